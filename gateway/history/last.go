package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/journal/shared"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// maxLast is how many journals LastFailed reads, of this gateway and of others.
const maxLast = 50

// LastFailed returns the id of the caller's last execution that did not succeed, or that succeeded but whose answer was lost when its
// gateway was killed; preferably of the same session, "" for none. With a shared store, another gateway may have run it. If a later one
// still runs, or its gateway has died a moment ago, that is an error. A caller that gives the code of a later one that succeeded has lost
// its answer. Errors are *tool.Error.
func (h *History) LastFailed(ctx context.Context, code string) (string, error) {
	if h.Root == "" {
		return "", nil
	}
	h.Flush(ctx, "")
	ended, running, err := lastFailedHere(h, tool.Principal(ctx))
	if err != nil {
		return "", toolcall.Unreadable(ctx, h.opts.Logger, err)
	}
	elsewhere, err := ranElsewhere(ctx, h, false)
	if err != nil {
		return "", err
	}
	for _, f := range elsewhere {
		if isPending(f) {
			running = append(running, f)
		} else {
			ended = append(ended, f)
		}
	}
	failed := lastOf(ctx, ended, func(f shared.Found) bool { return isLastFailed(ctx, h, f) })
	pending := lastOf(ctx, running, func(f shared.Found) bool { return isOwn(ctx, f) })
	if pending.Started.After(failed.Started) && (pending.Session == tool.Session(ctx) || failed.Session != tool.Session(ctx)) {
		return "", pendingError(pending.ID, failed.ID)
	}
	if strings.TrimSpace(code) != "" {
		if same, err := lastSucceeded(ctx, h, code); err != nil || same.Started.After(failed.Started) {
			return same.ID, err
		}
	}
	return failed.ID, nil
}

// lastOf returns the newest of the executions that are selected; preferably of the caller's session.
func lastOf(ctx context.Context, all []shared.Found, selected func(shared.Found) bool) journal.Header {
	var last, same journal.Header
	for _, f := range all {
		if !selected(f) {
			continue
		}
		if f.Started.After(last.Started) {
			last = f.Header
		}
		if f.Session == tool.Session(ctx) && f.Started.After(same.Started) {
			same = f.Header
		}
	}
	if same.ID != "" {
		return same
	}
	return last
}

// pendingError is the error for a caller if its last execution runs, perhaps on a gateway that has died. One that has lost its answer
// must not run the program from its start. before is the last one that failed, "" for none.
func pendingError(id, before string) error {
	e := &tool.Error{Kind: tool.Invalid, Message: "the last one, " + id + ", still runs, or its gateway was lost a moment ago"}
	e.Hint = fmt.Sprintf("resume=%q when it has ended, in some seconds; to run its program from its start would repeat its calls", id)
	if before != "" {
		e.Hint += fmt.Sprintf("; resume=%q for the one that failed before", before)
	}
	return e
}

// lastFailedHere returns the newest journals of this gateway, but for those of programs that succeeded and were answered.
func lastFailedHere(h *History, principal string) (ended, running []shared.Found, err error) {
	h.taking.Lock() // recovery locks journals of executions that have ended
	defer h.taking.Unlock()
	folder := h.Folder(principal)
	ids := slices.DeleteFunc(journal.List(folder), func(id string) bool { return journal.Succeeded(journal.Path(folder, id)) })
	for _, id := range ids[:min(len(ids), maxLast)] {
		contents, runs, err := readJournal(h, filepath.Base(folder), id)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, journal.ErrDamaged):
		case err != nil: // an earlier one is not the last one
			return nil, nil, err
		case runs:
			running = append(running, shared.Found{Contents: contents})
		default:
			ended = append(ended, shared.Found{Contents: contents})
		}
	}
	return ended, running, nil
}

// readJournal reads a journal, also while it is locked. runs says that its program has not ended, as far as is known here.
func readJournal(h *History, folder, id string) (c *journal.Contents, runs bool, err error) {
	f, err := openJournal(h, folder, id)
	if err == nil {
		return f.Contents, false, f.Close()
	}
	if errors.Is(err, journal.ErrRunning) { // or it is being read, or resumed
		if c, missing := journal.Peek(journal.Path(filepath.Join(h.Root, folder), id), maxPeek); missing == nil {
			return c, c.Over == nil, nil
		}
	}
	return nil, false, err
}

// ranElsewhere returns the journals that this gateway does not have, of programs of the caller that others ran.
func ranElsewhere(ctx context.Context, h *History, succeeded bool) ([]shared.Found, error) {
	folder := h.Folder(tool.Principal(ctx))
	here := journal.List(folder)
	all, err := h.Copies.Recent(ctx, shared.Query{
		Folder: filepath.Base(folder), Succeeded: succeeded, Most: maxLast, Skip: func(id string) bool { return slices.Contains(here, id) },
	})
	if err != nil {
		return nil, toolcall.Unreadable(ctx, h.opts.Logger, err)
	}
	return all, nil
}

// isLastFailed reports whether the caller can resume an execution as its last one.
func isLastFailed(ctx context.Context, h *History, f shared.Found) bool {
	return isOwn(ctx, f) && f.Resumed == "" && (f.Kept || f.Lost || !succeeded(f)) && !orphan(h, f.Contents)
}

func succeeded(f shared.Found) bool {
	return EndOf(f.Contents, time.Time{}).Record.Status == sandbox.OK
}

// isPending reports whether a program of another gateway has not ended, or was not answered, as far as is known of that gateway.
func isPending(f shared.Found) bool {
	return !f.Kept && !f.Lost && (f.Over == nil || succeeded(f))
}

// isOwn reports whether a program is one that the caller ran at this endpoint, and not of a workflow.
func isOwn(ctx context.Context, f shared.Found) bool {
	return f.Principal == tool.Principal(ctx) && !ofRun(f.Root) && ProgramOf(f.Contents).Endpoint == tool.Endpoint(ctx)
}

// LastSucceeded returns the id of the caller's last execution that succeeded and whose journal is kept, "" for none. Errors are *tool.Error.
func (h *History) LastSucceeded(ctx context.Context) (string, error) {
	last, err := lastSucceeded(ctx, h, "")
	return last.ID, err
}

// lastSucceeded is LastSucceeded for a program with some code; "" is any.
func lastSucceeded(ctx context.Context, h *History, code string) (last journal.Header, err error) {
	all, err := ranElsewhere(ctx, h, true)
	if err != nil {
		return journal.Header{}, err
	}
	folder := h.Folder(tool.Principal(ctx))
	ids := slices.DeleteFunc(journal.List(folder), func(id string) bool { return !journal.Succeeded(journal.Path(folder, id)) })
	for _, id := range ids[:min(len(ids), maxLast)] {
		if c, err := journal.Peek(journal.Path(folder, id), maxPeek); err == nil {
			all = append(all, shared.Found{Contents: c})
		}
	}
	for _, f := range all {
		if isOwn(ctx, f) && f.Started.After(last.Started) && (code == "" || ProgramOf(f.Contents).Code == code) {
			last = f.Header
		}
	}
	return last, nil
}
