package gateway

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

// lastOne is what resume can be instead of an id: the last execution of the caller's that did not end well.
const lastOne = "last"

// resumed is an execution that another goes on with. Nobody else can while it is open.
type resumed struct {
	file *journal.File
	end  history.End
	same bool // with the same program
	// only, if not nil, says which of the calls that may have been done count: all others are made again.
	only func(journal.Call) bool
}

// close lets others have it.
func (r *resumed) close() {
	if r != nil {
		_ = r.file.Close() // nothing was written that was not acknowledged
	}
}

// resume finds the execution that a program goes on with, and fills in what the program does not say. It is nil where it
// goes on with none. Errors are *tool.Error.
func (g *Gateway) resume(ctx context.Context, p *execution.Program) (*resumed, error) {
	if p.Resume == "" {
		return g.after(ctx, p)
	}
	if p.Resume = strings.TrimSpace(p.Resume); p.Resume == lastOne {
		if p.Resume = g.History.LastFailed(ctx); p.Resume == "" {
			return nil, &tool.Error{Kind: tool.NotFound, Message: "there is no execution of yours that did not end well and is kept", Hint: "run the program without resume"}
		}
	}
	if p.File != "" || p.SaveAs != "" && strings.TrimSpace(p.Code) == "" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "resume runs the program of before, or code: no file"}
	}
	r, err := g.openResumed(ctx, p.Resume)
	if err != nil {
		return nil, err
	}
	kept := history.ProgramOf(r.file.Contents)
	r.same = strings.TrimSpace(p.Code) == "" || p.Code == kept.Code
	kept.Fill(p, r.same)
	return r, nil
}

// after finds the execution whose calls a program does not repeat unasked where they may have been done. It is nil where
// nothing of it is known, as it never made a call or ended well.
func (g *Gateway) after(ctx context.Context, p *execution.Program) (*resumed, error) {
	if p.After == "" {
		return nil, nil
	}
	r, err := g.openResumed(ctx, p.After)
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
func (g *Gateway) openResumed(ctx context.Context, id string) (*resumed, error) {
	f, end, err := g.History.OpenFailed(ctx, id)
	if err != nil {
		return nil, err
	}
	return &resumed{file: f, end: end}, nil
}

// begin gives an execution its journal, with what it goes on with. Without resume a program runs also where there can be none.
func (g *Gateway) begin(ctx context.Context, run *toolcall.Execution, program execution.Program, before *resumed) error {
	if g.History.Root == "" {
		return nil
	}
	h, err := header(run, program, before)
	if err != nil {
		return err
	}
	var carried []journal.Call
	if before != nil {
		run.Root = h.Root
		g.Guard.Note(ctx, run, before.end.Record.Read)
		var answers *replay
		answers, carried = newReplay(before.file.Contents, before.end, before.same, before.only)
		answers.gateway, run.Replay = g, answers
	}
	opts := &journal.Options{}
	if g.cfg.Load().Journal.Keep == 0 {
		opts.Results = -1
	}
	run.Journal, err = journal.Create(g.History.Folder(run.Principal), h, carried, opts)
	if err == nil && before != nil {
		if err = before.file.Resume(run.ID); err != nil {
			err = errors.Join(err, run.Journal.Remove())
		}
	}
	if err == nil {
		return nil
	}
	run.Journal = nil
	g.log.ErrorContext(ctx, "execution has no journal, and cannot be resumed", "execution", run.ID, "error", err)
	if before != nil {
		return &tool.Error{Kind: tool.Internal, Message: "the journal cannot be written", Hint: "the operator's log says why", Err: err}
	}
	return nil
}

func header(run *toolcall.Execution, p execution.Program, before *resumed) (journal.Header, error) {
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

// undo is for an execution that could not be run: it leaves what it was to go on with as it was.
func (g *Gateway) undo(ctx context.Context, run *toolcall.Execution, before *resumed) {
	if run.Journal == nil {
		return
	}
	var err error
	if before != nil {
		err = before.file.Resume("")
	}
	if err = errors.Join(err, run.Journal.Remove()); err != nil {
		g.log.ErrorContext(ctx, "journal is not removed", "execution", run.ID, "error", err)
	}
}

// canResume is what tells a model of a program that failed how its calls are not made again; "" where there is no need to.
func (g *Gateway) canResume(e *execution.Result, run *toolcall.Execution) string {
	if run.Journal == nil || !e.Failed() || run.Effects.Load() == 0 || g.cfg.Load().Journal.Keep == 0 {
		return ""
	}
	return e.ID
}
