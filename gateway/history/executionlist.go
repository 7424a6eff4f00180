package history

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Status says how a program ended.
type Status = sandbox.Status

// Brief is an execution in a list.
type Brief struct {
	ID        string         `json:"id"`
	Principal string         `json:"principal,omitempty"`
	Language  string         `json:"language"`
	Workspace string         `json:"workspace,omitempty"`
	Status    sandbox.Status `json:"status"`
	Started   time.Time      `json:"started"`
	Duration  time.Duration  `json:"duration"`
	// Made and Tokens are as in [Record].
	Made   int `json:"made,omitempty"`
	Tokens int `json:"tokens,omitempty"`

	revision uint64
	read     int64 // tokens of the results that it read
	partly   bool  // it made more calls than its record has
}

// Filter says which executions are meant. The zero value is the newest of all.
type Filter struct {
	// ID is a part of the id; Status, Language and Principal are as in the record. "" is any.
	ID, Language, Principal string
	Status                  Status
	// Since is the oldest start that counts; the zero time is all.
	Since time.Time
	// After is the id of one that has been seen: those before it are meant. "" is from the newest on; of one that is not there nothing follows.
	After string
	// Offset is how many of the newest are passed over, Limit how many there are at most; 0 is 50.
	Offset, Limit int
}

// Page is a part of the list of executions.
type Page struct {
	// Executions are the newest first.
	Executions []Brief
	// Total is how many the filter wants, Principals are those of all that the caller may see, sorted.
	Total      int
	Principals []string
}

// Executions returns a part of what the caller has run, or what all have for an operator. Each record is read once in the life of the process,
// so that a list of thousands costs no more than what has come since the last one. Errors are *tool.Error.
func (h *History) Executions(ctx context.Context, f Filter) (Page, error) {
	all, err := h.briefsOf(ctx)
	if err != nil {
		return Page{}, err
	}
	page, principals := Page{Executions: []Brief{}}, map[string]bool{}
	if f.Limit <= 0 {
		f.Limit = usualBriefs
	}
	for _, b := range slices.Backward(all) {
		principals[b.Principal] = true
		if !f.wants(b) {
			continue
		}
		if page.Total++; f.After == "" && page.Total > f.Offset && len(page.Executions) < f.Limit {
			page.Executions = append(page.Executions, b)
		}
		if b.ID == f.After {
			f.After = ""
		}
	}
	for name := range principals {
		page.Principals = append(page.Principals, name)
	}
	slices.Sort(page.Principals)
	return page, nil
}

// briefsOf returns all executions of the caller, or any for an operator, the oldest first. Errors are *tool.Error.
func (h *History) briefsOf(ctx context.Context) ([]Brief, error) {
	known, operator := map[string]bool{}, tool.Operator(ctx) != ""
	late := h.waiting(tool.Principal(ctx), operator) // first: what is written meanwhile is in the store
	all, err := h.briefs.read(ctx, h.records)
	if err != nil {
		return nil, toolcall.Unreadable(ctx, h.opts.Logger, err)
	}
	for _, b := range all {
		known[b.ID] = true
	}
	for _, r := range late {
		if !known[r.ID] {
			all = append(all, briefOf(r))
		}
	}
	return slices.DeleteFunc(all, func(b Brief) bool { return !operator && b.Principal != tool.Principal(ctx) }), nil
}

// Statuses are all that an execution can end with.
func Statuses() []string {
	return []string{
		string(sandbox.OK), string(sandbox.Failed), string(sandbox.Exited), string(sandbox.TimedOut), string(sandbox.OutOfCPU), string(sandbox.OutOfMemory),
		string(sandbox.Flooded), string(sandbox.Canceled), string(sandbox.Crashed), string(execution.Held), string(Interrupted),
	}
}

// usualBriefs is how many executions a page has where nothing is said.
const usualBriefs = 50

func (f Filter) wants(b Brief) bool {
	return strings.Contains(b.ID, f.ID) && (f.Status == "" || b.Status == f.Status) && (f.Language == "" || b.Language == f.Language) &&
		(f.Principal == "" || b.Principal == f.Principal) && !b.Started.Before(f.Since)
}

func briefOf(r Record) Brief {
	return Brief{
		ID: r.ID, Principal: r.Principal, Language: r.Language, Workspace: r.Workspace, Status: r.Status, Started: r.Started, Duration: r.Duration, Made: r.Made, Tokens: r.Tokens,
		read: r.ReadTokens(), partly: r.Made > len(r.Calls),
	}
}

// briefs are what lists need of the records of a store.
type briefs struct {
	mu   sync.Mutex
	all  []Brief // in the order in which they were written
	next uint64  // the revision from which on nothing was read
}

// read returns the briefs of all records, the oldest first, after a look at what has come and gone.
func (l *briefs) read(ctx context.Context, in *store.Bucket) ([]Brief, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for entry, err := range in.Since(ctx, l.next) {
		if err != nil {
			return nil, err
		}
		l.next = entry.Revision + 1
		r, err := recordOf(entry)
		if err != nil {
			continue // the execution's own page says that it cannot be read
		}
		b := briefOf(r)
		b.revision = entry.Revision
		l.add(b)
	}
	oldest := l.next
	for entry, err := range in.Since(ctx, 0) { // what is older has gone by the store's limits
		if err != nil {
			return nil, err
		}
		oldest = entry.Revision
		break
	}
	l.all = slices.DeleteFunc(l.all, func(b Brief) bool { return b.revision < oldest })
	return slices.Clone(l.all), nil
}

// add adds what is newest. A record that was written again is there once: that happens soon after it was written first.
func (l *briefs) add(b Brief) {
	from := max(0, len(l.all)-maxPending)
	if at := slices.IndexFunc(l.all[from:], func(o Brief) bool { return o.ID == b.ID && o.Principal == b.Principal }); at >= 0 {
		l.all = slices.Delete(l.all, from+at, from+at+1)
	}
	l.all = append(l.all, b)
}
