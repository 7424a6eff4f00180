package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
)

// OpenEnded opens the journal of an execution of the caller that has ended, to resume it. One that succeeded can be resumed too: its
// caller may have lost the answer. An execution of a run that is unknown makes no call from now on that must not be made twice. Errors are
// *tool.Error.
func (h *History) OpenEnded(ctx context.Context, id string) (*journal.File, End, error) {
	if h.Root == "" {
		return nil, End{}, &tool.Error{Kind: tool.Invalid, Message: "cannot resume: there is no data directory for journals", Hint: "run the program without resume"}
	}
	h.Flush(ctx, id)
	f, err := openLeft(h, tool.Principal(ctx), id)
	if err != nil {
		return nil, End{}, h.notResumable(ctx, id, err)
	}
	end := EndOf(f.Contents, time.Time{})
	if f.Void || f.Principal != tool.Principal(ctx) || !reachable(ctx, f) {
		err = noExecution(id)
	} else if f.Resumed != "" {
		err = &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s was resumed by %s", id, f.Resumed), Hint: "resume that one"}
	} else if orphan(h, f.Contents) {
		err = noExecution(id)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, End{}, err
	}
	return f, end, nil
}

// reachable reports whether a caller can resume an execution: at an endpoint, only those that began there: their journals have
// results of its tools only. A caller that is not confined can resume all, and they stay confined.
func reachable(ctx context.Context, f *journal.File) bool {
	at := tool.Endpoint(ctx)
	return at == "" || ProgramOf(f.Contents).Endpoint == at
}

// orphan reports whether an execution was killed before the execution that it resumes recorded it. It has made no calls.
func orphan(h *History, f *journal.Contents) bool {
	if f.Resumes == "" {
		return false
	}
	before, _, err := readJournal(h, workspace.Folder(f.Principal), f.Resumes)
	if err != nil {
		return errors.Is(err, journal.ErrRunning)
	}
	return before.Resumed != f.ID
}

// ErrRunning is wrapped in the error for an execution that cannot be resumed yet, because it has not ended, or its end is not known at
// this gateway yet.
var ErrRunning = journal.ErrRunning

// ErrSucceeded is in the error for an execution that succeeded and whose journal is not kept.
var ErrSucceeded = errors.New("it succeeded")

// succeededError is the error for an execution that cannot be resumed because it succeeded. It must not make a caller that has lost
// the answer repeat its calls.
func succeededError(r Record) error {
	if r.Made == 0 {
		return &tool.Error{Kind: tool.Invalid, Message: r.ID + " succeeded without calls: nothing to resume", Hint: "run the program without resume", Err: ErrSucceeded}
	}
	return &tool.Error{Kind: tool.Invalid, Message: r.ID + " succeeded, and its journal is not kept", Hint: "its calls were made; run the program without resume only to make them again", Err: ErrSucceeded}
}

// notResumable returns the error for a journal that cannot be resumed.
func (h *History) notResumable(ctx context.Context, id string, err error) error {
	switch {
	case errors.Is(err, journal.ErrRunning):
		return &tool.Error{Kind: tool.Invalid, Message: id + " still runs, or is being resumed", Hint: "wait until it ends", Err: err}
	case errors.Is(err, store.ErrUnreachable):
		return toolcall.Unavailable(err)
	case !errors.Is(err, fs.ErrNotExist):
		h.opts.Logger.ErrorContext(ctx, "journal cannot be read", "execution", sanitize.Line(id, 60), "error", err)
		return &tool.Error{Kind: tool.Internal, Message: "the journal of " + sanitize.Line(id, 60) + " cannot be read", Hint: "check what it has done, then run the program without resume"}
	}
	record, err := h.Record(ctx, id)
	if errors.Is(err, ErrNoExecution) {
		return h.voided(ctx, id, err)
	}
	if err != nil {
		return err
	}
	switch {
	case record.Status == sandbox.OK:
		return succeededError(record)
	case record.Made == 0:
		return idleError(record)
	}
	return &tool.Error{Kind: tool.NotFound, Message: "the journal of " + id + " has expired", Hint: "check what it has done, then run the program without resume"}
}

// voided makes sure that an unknown execution of a run makes no calls from now on, and returns the error. Its gateway may only have been
// paused before the first one, and the run executes the program again.
func (h *History) voided(ctx context.Context, id string, unknown error) error {
	run := toolcall.ScopeOf(ctx).Run
	if run == "" || h.Copies == nil {
		return unknown
	}
	principal := tool.Principal(ctx)
	err := h.Copies.Void(ctx, workspace.Folder(principal), journal.Header{ID: id, Principal: principal, Root: run, Started: time.Now()})
	if err != nil {
		return h.notResumable(ctx, id, err)
	}
	return unknown
}

// idleError is the error for an execution without a journal that made no calls, as one that was killed before other gateways could see its
// journal. It is an [ErrNoExecution].
func idleError(r Record) error {
	hint := "run the program without resume"
	if r.Resumes != "" {
		hint = "resume " + r.Resumes
	}
	return &tool.Error{Kind: tool.NotFound, Message: r.ID + " made no calls: nothing to resume", Hint: hint, Err: ErrNoExecution}
}

// ofRun reports whether an execution with this root belongs to the run of a workflow, which resumes it itself.
func ofRun(root string) bool { return root != "" && !strings.HasPrefix(root, "e-") }
