package executor

import (
	"context"
	"sync"
	"time"

	"sallyport/gateway/typecheck"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Drafts checks the types of programs that are being written, with the checkers of programs that run: each principal has its own.
// It is safe for concurrent use.
type Drafts struct {
	checks *checks

	mu     sync.Mutex
	newest map[checkerKey]*typecheck.Check // the unfinished checks
}

// NewDrafts returns what checks drafts for the callers of an executor.
func NewDrafts(ex *Executor) *Drafts {
	return &Drafts{checks: ex.checks, newest: map[checkerKey]*typecheck.Check{}}
}

// DraftState says whether a draft was checked.
type DraftState string

// The states of drafts.
const (
	DraftChecked DraftState = "checked"
	// DraftDisabled: the settings turn checks off.
	DraftDisabled DraftState = "disabled"
	// DraftMissing: the checker of the language is not installed. DraftRemote: no machine that runs programs has it.
	DraftMissing DraftState = "missing"
	DraftRemote  DraftState = "remote"
	// DraftBusy: other principals use all checkers. DraftLarge: the text is too large.
	DraftBusy  DraftState = "busy"
	DraftLarge DraftState = "large"
	// DraftStarting: the checker starts, or has failed and is started again later. DraftReplaced: a newer draft is checked instead.
	DraftStarting DraftState = "starting"
	DraftReplaced DraftState = "replaced"
)

// Draft is a draft that was checked. Without the state [DraftChecked], nothing is known of its types.
type Draft struct {
	State    DraftState
	Warnings []typecheck.Warning
}

// maxDraftWait is how long a check waits for its checker, and maxDraft the maximum size of a draft, in bytes.
const (
	maxDraftWait = 10 * time.Second
	maxDraft     = 128 << 10
)

// CheckDraft checks a program of the caller. It replaces the caller's earlier check in that language, and is dropped when ctx ends.
func (d *Drafts) CheckDraft(ctx context.Context, language, code string) Draft {
	interpreter := sandbox.Python
	if language == "typescript" {
		interpreter = sandbox.Node
	}
	checker, state := d.checker(ctx, interpreter)
	if len(code) > maxDraft {
		state = DraftLarge
	}
	if state != DraftChecked {
		return Draft{State: state}
	}
	key := checkerKey{tool.Principal(ctx), tool.Endpoint(ctx), interpreter}
	check := d.replace(key, checker.Check(code))
	if check == nil {
		return Draft{State: DraftBusy}
	}
	defer d.remove(key, check)
	ctx, cancel := context.WithTimeout(ctx, maxDraftWait)
	defer cancel()
	found := check.Warnings(ctx)
	if !check.Made() && !check.Dropped() && checker.Unavailable() {
		return Draft{State: DraftRemote}
	}
	return draftOf(check, found)
}

// draftOf returns the result of a check.
func draftOf(check *typecheck.Check, found []typecheck.Warning) Draft {
	switch {
	case check.Made():
		return Draft{State: DraftChecked, Warnings: found}
	case check.Dropped():
		return Draft{State: DraftReplaced}
	}
	return Draft{State: DraftStarting}
}

// checker returns the checker of the caller, or why there is none.
func (d *Drafts) checker(ctx context.Context, interpreter sandbox.Interpreter) (*typecheck.Checker, DraftState) {
	settings := d.checks.settings()
	switch checker := d.checks.checker(ctx, interpreter); {
	case checker != nil:
		return checker, DraftChecked
	case !settings.Typecheck:
		return nil, DraftDisabled
	case d.checks.missing(ctx, interpreter):
		return nil, DraftMissing
	}
	return nil, DraftBusy
}

// replace drops the unfinished check of a key for a new one, which may be nil.
func (d *Drafts) replace(key checkerKey, check *typecheck.Check) *typecheck.Check {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest[key].Drop()
	if delete(d.newest, key); check != nil {
		d.newest[key] = check
	}
	return check
}

// remove ends a check: it is dropped if it has not begun.
func (d *Drafts) remove(key checkerKey, check *typecheck.Check) {
	check.Drop()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.newest[key] == check {
		delete(d.newest, key)
	}
}
