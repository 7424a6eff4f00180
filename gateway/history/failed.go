package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// OpenFailed opens the journal of an execution of the caller that did not succeed; for a workflow's call also one that did. Errors are *tool.Error.
func (h *History) OpenFailed(ctx context.Context, id string) (*journal.File, End, error) {
	if h.Root == "" {
		return nil, End{}, &tool.Error{Kind: tool.Invalid, Message: "cannot resume: there is no data directory for journals", Hint: "run the program without resume"}
	}
	h.Flush(ctx, id)
	f, err := journal.Open(journal.Path(h.Folder(tool.Principal(ctx)), id))
	if err != nil {
		return nil, End{}, h.notResumable(ctx, id, err)
	}
	end := EndOf(f.Contents, time.Time{})
	if f.Principal != tool.Principal(ctx) {
		err = noExecution(id)
	} else if f.Resumed != "" {
		err = &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s was resumed by %s", id, f.Resumed), Hint: "resume that one"}
	} else if end.Record.Status == sandbox.OK && toolcall.ScopeOf(ctx).Run == "" {
		err = succeededError(id)
	} else if orphan(h, f) {
		err = noExecution(id)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, End{}, err
	}
	return f, end, nil
}

// orphan reports whether an execution was killed before the execution that it resumes recorded it. It has made no calls.
func orphan(h *History, f *journal.File) bool {
	if f.Resumes == "" {
		return false
	}
	before, err := journal.Open(journal.Path(h.Folder(f.Principal), f.Resumes))
	if err != nil {
		return errors.Is(err, journal.ErrRunning)
	}
	defer func() { _ = before.Close() }()
	return before.Resumed != f.ID
}

// ErrSucceeded is in the error for an execution that succeeded: there is nothing to resume.
var ErrSucceeded = errors.New("it succeeded")

func succeededError(id string) error {
	return &tool.Error{Kind: tool.Invalid, Message: id + " succeeded: nothing to resume", Hint: "run the program without resume", Err: ErrSucceeded}
}

// notResumable returns the error for a journal that cannot be resumed.
func (h *History) notResumable(ctx context.Context, id string, err error) error {
	switch {
	case errors.Is(err, journal.ErrRunning):
		return &tool.Error{Kind: tool.Invalid, Message: id + " still runs, or is being resumed", Hint: "wait until it ends"}
	case !errors.Is(err, fs.ErrNotExist):
		h.opts.Logger.ErrorContext(ctx, "journal cannot be read", "execution", sanitize.Line(id, 60), "error", err)
		return &tool.Error{Kind: tool.Internal, Message: "the journal of " + sanitize.Line(id, 60) + " cannot be read", Hint: "check what it has done, then run the program without resume"}
	}
	record, err := h.Record(ctx, id)
	if err != nil {
		return err
	}
	if record.Status == sandbox.OK {
		return succeededError(id)
	}
	return &tool.Error{Kind: tool.NotFound, Message: "the journal of " + id + " has expired", Hint: "check what it has done, then run the program without resume"}
}

// LastFailed returns the id of the caller's last execution that can be resumed, preferably of the same session; "" for none.
func (h *History) LastFailed(ctx context.Context) string {
	if h.Root == "" {
		return ""
	}
	h.Flush(ctx, "")
	folder := h.Folder(tool.Principal(ctx))
	ids := slices.DeleteFunc(journal.List(folder), func(id string) bool { return journal.Succeeded(journal.Path(folder, id)) })
	var last, same journal.Header // of all, and of the session
	for _, id := range ids[:min(len(ids), maxLast)] {
		f, err := journal.Open(journal.Path(folder, id))
		if err != nil {
			continue
		}
		if f.Resumed == "" && EndOf(f.Contents, time.Time{}).Record.Status != sandbox.OK {
			if f.Started.After(last.Started) {
				last = f.Header
			}
			if f.Session == tool.Session(ctx) && f.Started.After(same.Started) {
				same = f.Header
			}
		}
		_ = f.Close()
	}
	return cmp.Or(same.ID, last.ID)
}

// maxLast is how many journals LastFailed reads.
const maxLast = 50
