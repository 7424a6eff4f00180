package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

// lastFailed as the value of resume selects the caller's last failed execution.
const lastFailed = "last"

// Resumed is an execution that is being resumed. Its journal is locked until Close.
type Resumed struct {
	file *journal.File
	end  history.End
	same bool // with the same program
	// only, if not nil, selects the recorded calls that are used: all others are made again.
	only func(journal.Call) bool
}

// Close unlocks the journal.
func (r *Resumed) Close() {
	if r != nil {
		_ = r.file.Close() // all writes were acknowledged
	}
}

// Resume opens the execution that a program resumes, and completes the program from it. It returns nil if the program
// resumes none. Errors are *tool.Error.
func (rr *Replay) Resume(ctx context.Context, p *execution.Program) (*Resumed, error) {
	if p.Resume == "" {
		return rr.openPrevious(ctx, p)
	}
	if p.Resume = strings.TrimSpace(p.Resume); p.Resume == lastFailed {
		last, err := rr.opts.History.LastFailed(ctx, p.Code)
		if err == nil && last == "" {
			err = rr.nothingToResume(ctx)
		}
		if err != nil {
			return nil, err
		}
		p.Resume = last
	}
	if p.File != "" || p.SaveAs != "" && strings.TrimSpace(p.Code) == "" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "resume runs the earlier program or code, not a file"}
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

// nothingToResume is the error for a caller without a failed execution. One that has lost the answer of a program that succeeded
// must not conclude that it is to be run again.
func (rr *Replay) nothingToResume(ctx context.Context) error {
	e := &tool.Error{Kind: tool.NotFound, Message: "no failed execution to resume", Hint: "run the program without resume"}
	last, err := rr.opts.History.LastSucceeded(ctx)
	if err != nil {
		return err
	}
	if last != "" {
		e.Message += "; the last one, " + last + ", succeeded"
		e.Hint = fmt.Sprintf("if its answer was lost, resume=%q gives it again; a new program needs no resume", last)
	}
	return e
}

// openPrevious opens the earlier execution of the same step. A program that runs because a person resumed the run does not repeat its
// calls that succeeded, unless they are safe to repeat, and uncertain ones only with confirmation. For a retry, which the definition
// asks for, that applies only to calls that a crash interrupted. An execution that is unknown was ended before it made a call: the one
// before it counts. It returns nil if there is none, or it succeeded.
func (rr *Replay) openPrevious(ctx context.Context, p *execution.Program) (r *Resumed, err error) {
	for _, id := range slices.Backward(p.After) {
		if r, err = rr.openResumed(ctx, id); !errors.Is(err, history.ErrNoExecution) {
			break
		}
	}
	if errors.Is(err, history.ErrNoExecution) || errors.Is(err, history.ErrSucceeded) {
		return nil, nil
	}
	if err != nil || r == nil {
		return nil, err
	}
	r.only = func(c journal.Call) bool {
		return uncertain(c) || c.Decision != "" || succeeded(c) && !rr.safeToRepeat(c)
	}
	if p.Retry {
		r.only = func(c journal.Call) bool { return c.State == journal.Begun || c.Decision != "" }
	}
	return r, nil
}

// openResumed opens the journal of a failed execution of the caller.
func (rr *Replay) openResumed(ctx context.Context, id string) (*Resumed, error) {
	f, end, err := rr.opts.History.OpenEnded(ctx, id)
	if err != nil {
		return nil, err
	}
	return &Resumed{file: f, end: end}, nil
}

// Begin creates the journal of an execution, with the calls of the resumed one. That it cannot is an error only for one that resumes
// another, and for a workflow's.
func (rr *Replay) Begin(ctx context.Context, run *toolcall.Execution, program execution.Program, before *Resumed) error {
	if rr.opts.History.Root == "" {
		return nil
	}
	h, err := newHeader(run, program, before)
	if err != nil {
		return err
	}
	h.Gateway = rr.opts.History.Copies.Gateway()
	var carried []journal.Call
	if before != nil {
		run.Root = h.Root
		rr.opts.Guard.AddExecutionOrigins(ctx, run, before.end.Record.Read)
		var answers *replayer
		answers, carried = newReplayer(before.file.Contents, before.end, before.same, before.only)
		answers.replay, run.Replay = rr, answers
	}
	folder := rr.opts.History.Folder(run.Principal)
	opts := &journal.Options{Copy: rr.opts.History.Copies.Copy(filepath.Base(folder), run.ID)}
	if rr.opts.Settings.Load().Journal.Keep == 0 {
		opts.Results = -1
	}
	run.Journal, err = journal.Create(folder, h, carried, opts)
	if err == nil && before != nil {
		err = run.Journal.Flush() // else no gateway could resume it after this one has died
		if err == nil {
			err = before.file.Resume(run.ID)
		}
		if err != nil {
			err = errors.Join(err, run.Journal.Remove())
		}
	}
	if err == nil {
		return nil
	}
	run.Journal = nil
	rr.opts.Logger.ErrorContext(ctx, "execution has no journal, and cannot be resumed", "execution", run.ID, "error", err)
	if before != nil || run.Unattended { // a workflow takes a program without a journal for one that was never run
		return unwritableError(err)
	}
	return nil
}

func newHeader(run *toolcall.Execution, p execution.Program, before *Resumed) (journal.Header, error) {
	kept, err := json.Marshal(history.Program{
		Code: p.Code, Language: p.Language, File: p.File, Variables: p.Variables, Timeout: p.Timeout, Memory: p.Memory,
		Session: p.Session, Environment: p.Environment, Workspace: p.Workspace, Endpoint: run.Endpoint,
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

// Undo reverts Begin for an execution that could not be run, so that the earlier one can be resumed again.
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

// ResumeID returns the id to resume a failed execution with, "" if it made no calls that should not be repeated.
func (rr *Replay) ResumeID(e *execution.Result, run *toolcall.Execution) string {
	if run.Journal == nil || !e.Failed() || run.Effects.Load() == 0 && e.Status != execution.Interrupted || rr.opts.Settings.Load().Journal.Keep == 0 {
		return ""
	}
	return e.ID
}
