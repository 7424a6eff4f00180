package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

// lastFailed is what resume can be instead of an id: the last execution of the caller's that did not end well.
const lastFailed = "last"

// Resumed is an execution that is being resumed. It is locked while it is open.
type Resumed struct {
	file *journal.File
	end  history.End
	same bool // with the same program
	// only, if not nil, says which of the calls that may have been done count: all others are made again.
	only func(journal.Call) bool
}

// Close lets others have it.
func (r *Resumed) Close() {
	if r != nil {
		_ = r.file.Close() // nothing was written that was not acknowledged
	}
}

// Resume finds the execution that a program continues with, and fills in what the program does not say. It is nil where it
// continues with none. Errors are *tool.Error.
func (rr *Replay) Resume(ctx context.Context, p *execution.Program) (*Resumed, error) {
	if p.Resume == "" {
		return rr.after(ctx, p)
	}
	if p.Resume = strings.TrimSpace(p.Resume); p.Resume == lastFailed {
		if p.Resume = rr.opts.History.LastFailed(ctx); p.Resume == "" {
			return nil, &tool.Error{Kind: tool.NotFound, Message: "no failed execution to resume", Hint: "run the program without resume"}
		}
	}
	if p.File != "" || p.SaveAs != "" && strings.TrimSpace(p.Code) == "" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "resume runs the program of before, or code: no file"}
	}
	r, err := rr.openResumed(ctx, p.Resume)
	if err != nil {
		return nil, err
	}
	kept := history.ProgramOf(r.file.Contents)
	r.same = strings.TrimSpace(p.Code) == "" || p.Code == kept.Code
	kept.Fill(p, r.same)
	return r, nil
}

// after finds the execution with the calls that a program must not repeat unasked where they may have been done. It is nil where
// nothing of it is known, as it never made a call or ended well.
func (rr *Replay) after(ctx context.Context, p *execution.Program) (*Resumed, error) {
	if p.After == "" {
		return nil, nil
	}
	r, err := rr.openResumed(ctx, p.After)
	if wrong := (*tool.Error)(nil); errors.As(err, &wrong) && (errors.Is(err, history.ErrNoExecution) || errors.Is(err, history.ErrEndedWell)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.only = func(c journal.Call) bool { return uncertain(c) || c.Decision != "" }
	if p.Retry {
		r.only = func(c journal.Call) bool { return c.State == journal.Begun || c.Decision != "" }
	}
	return r, nil
}

// openResumed opens the journal of an execution of the caller's that did not end well.
func (rr *Replay) openResumed(ctx context.Context, id string) (*Resumed, error) {
	f, end, err := rr.opts.History.OpenFailed(ctx, id)
	if err != nil {
		return nil, err
	}
	return &Resumed{file: f, end: end}, nil
}

// Begin gives an execution its journal, with what it continues with. Without resume a program runs also where there can be none.
func (rr *Replay) Begin(ctx context.Context, run *toolcall.Execution, program execution.Program, before *Resumed) error {
	if rr.opts.History.Root == "" {
		return nil
	}
	h, err := header(run, program, before)
	if err != nil {
		return err
	}
	var carried []journal.Call
	if before != nil {
		run.Root = h.Root
		rr.opts.Guard.Note(ctx, run, before.end.Record.Read)
		var answers *answers
		answers, carried = newReplay(before.file.Contents, before.end, before.same, before.only)
		answers.room, run.Replay = rr, answers
	}
	opts := &journal.Options{}
	if rr.opts.Settings.Load().Journal.Keep == 0 {
		opts.Results = -1
	}
	run.Journal, err = journal.Create(rr.opts.History.Folder(run.Principal), h, carried, opts)
	if err == nil && before != nil {
		if err = before.file.Resume(run.ID); err != nil {
			err = errors.Join(err, run.Journal.Remove())
		}
	}
	if err == nil {
		return nil
	}
	run.Journal = nil
	rr.opts.Logger.ErrorContext(ctx, "execution has no journal, and cannot be resumed", "execution", run.ID, "error", err)
	if before != nil {
		return &tool.Error{Kind: tool.Internal, Message: "the journal cannot be written", Hint: "the operator's log says why", Err: err}
	}
	return nil
}

func header(run *toolcall.Execution, p execution.Program, before *Resumed) (journal.Header, error) {
	kept, err := json.Marshal(history.Program{
		Code: p.Code, Language: p.Language, File: p.File, Variables: p.Variables, Timeout: p.Timeout, Memory: p.Memory,
		Session: p.Session, Environment: p.Environment, Workspace: p.Workspace,
	})
	h := journal.Header{ID: run.ID, Principal: run.Principal, Session: run.Session, Started: time.Now().UTC(), Program: kept}
	if run.Root != run.ID {
		h.Root = run.Root
	}
	if before != nil {
		h.Resumes, h.Root = before.file.ID, cmp.Or(before.file.Root, h.Root, before.file.ID)
	}
	return h, err
}

// Undo is for an execution that could not be run: it leaves what it was to continue with as it was.
func (rr *Replay) Undo(ctx context.Context, run *toolcall.Execution, before *Resumed) {
	if run.Journal == nil {
		return
	}
	var err error
	if before != nil {
		err = before.file.Resume("")
	}
	if err = errors.Join(err, run.Journal.Remove()); err != nil {
		rr.opts.Logger.ErrorContext(ctx, "journal is not removed", "execution", run.ID, "error", err)
	}
}

// CanResume is what tells a model of a program that failed how its calls are not made again; "" where there is no need to.
func (rr *Replay) CanResume(e *execution.Result, run *toolcall.Execution) string {
	if run.Journal == nil || !e.Failed() || run.Effects.Load() == 0 || rr.opts.Settings.Load().Journal.Keep == 0 {
		return ""
	}
	return e.ID
}
