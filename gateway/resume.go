package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// lastOne is what resume can be instead of an id: the last execution of the caller's that did not end well.
const lastOne = "last"

// maxLast is how many journals are looked at for it.
const maxLast = 50

// resumed is an execution that another goes on with. Nobody else can while it is open.
type resumed struct {
	file *journal.File
	end  over
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
		if p.Resume = g.lastFailed(ctx); p.Resume == "" {
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
	kept := programIn(r.file.Contents)
	r.same = strings.TrimSpace(p.Code) == "" || p.Code == kept.Code
	kept.fill(p, r.same)
	return r, nil
}

// after finds the execution whose calls a program does not repeat unasked where they may have been done. It is nil where
// nothing of it is known, as it never made a call or ended well.
func (g *Gateway) after(ctx context.Context, p *execution.Program) (*resumed, error) {
	if p.After == "" {
		return nil, nil
	}
	r, err := g.openResumed(ctx, p.After)
	if wrong := (*tool.Error)(nil); errors.As(err, &wrong) && (errors.Is(err, ErrNoExecution) || errors.Is(err, errEndedWell)) {
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

// fill puts what a program was run with where nothing else is said.
func (k keptProgram) fill(p *execution.Program, same bool) {
	if same {
		p.Code, p.File, p.Language = k.Code, k.File, k.Language
	}
	p.Language = cmp.Or(p.Language, k.Language)
	p.Timeout, p.Memory = cmp.Or(p.Timeout, k.Timeout), cmp.Or(p.Memory, k.Memory)
	p.Session, p.Environment, p.Workspace = cmp.Or(p.Session, k.Session), cmp.Or(p.Environment, k.Environment), cmp.Or(p.Workspace, k.Workspace)
	variables := maps.Clone(k.Variables)
	if variables == nil {
		variables = map[string]json.RawMessage{}
	}
	maps.Copy(variables, p.Variables)
	if len(variables) > 0 {
		p.Variables = variables
	}
}

// lastFailed is the last execution of the caller's that can be resumed, of the same client session if there is one; "" if there is none.
func (g *Gateway) lastFailed(ctx context.Context) string {
	if g.recorder.root == "" {
		return ""
	}
	g.recorder.flush(ctx, "")
	folder := g.recorder.folder(tool.Principal(ctx))
	ids := slices.DeleteFunc(journal.List(folder), func(id string) bool { return journal.Well(journal.Path(folder, id)) })
	var last, same journal.Header // of all, and of the session
	for _, id := range ids[:min(len(ids), maxLast)] {
		f, err := journal.Open(journal.Path(folder, id))
		if err != nil {
			continue
		}
		if f.Resumed == "" && overIn(f.Contents, time.Time{}).Record.Status != sandbox.OK {
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

// openResumed opens the journal of an execution of the caller's that did not end well.
func (g *Gateway) openResumed(ctx context.Context, id string) (*resumed, error) {
	if g.recorder.root == "" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "nothing can be resumed: there is no data directory for journals", Hint: "run the program without resume"}
	}
	g.recorder.flush(ctx, id)
	f, err := journal.Open(journal.Path(g.recorder.folder(tool.Principal(ctx)), id))
	if err != nil {
		return nil, g.notResumable(ctx, id, err)
	}
	r := &resumed{file: f, end: overIn(f.Contents, time.Time{})}
	if f.Principal != tool.Principal(ctx) {
		err = noExecution(id)
	} else if f.Resumed != "" {
		err = &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s was resumed by %s", id, f.Resumed), Hint: "resume that one"}
	} else if r.end.Record.Status == sandbox.OK && toolcall.ScopeOf(ctx).Run == "" {
		err = endedWell(id)
	} else if g.orphan(f) {
		err = noExecution(id)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// orphan reports whether an execution was to go on with another and was killed before that was noted: it has done nothing.
func (g *Gateway) orphan(f *journal.File) bool {
	if f.Resumes == "" {
		return false
	}
	before, err := journal.Open(journal.Path(g.recorder.folder(f.Principal), f.Resumes))
	if err != nil {
		return errors.Is(err, journal.ErrRunning)
	}
	defer func() { _ = before.Close() }()
	return before.Resumed != f.ID
}

var errEndedWell = errors.New("it ended well")

func endedWell(id string) error {
	return &tool.Error{Kind: tool.Invalid, Message: id + " ended well: there is nothing to resume", Hint: "run the program without resume", Err: errEndedWell}
}

// notResumable says why there is no journal to go on with.
func (g *Gateway) notResumable(ctx context.Context, id string, err error) error {
	switch {
	case errors.Is(err, journal.ErrRunning):
		return &tool.Error{Kind: tool.Invalid, Message: id + " still runs, or is being resumed", Hint: "wait for its end"}
	case !errors.Is(err, fs.ErrNotExist):
		g.log.ErrorContext(ctx, "journal cannot be read", "execution", plain.Line(id, 60), "error", err)
		return &tool.Error{Kind: tool.Internal, Message: "the journal of " + plain.Line(id, 60) + " cannot be read", Hint: "run the program without resume, after a look at what it has done"}
	}
	record, err := g.Recorded(ctx, id)
	if err != nil {
		return err
	}
	if record.Status == sandbox.OK {
		return endedWell(id)
	}
	return &tool.Error{Kind: tool.NotFound, Message: "the journal of " + id + " is not kept any more", Hint: "run the program without resume, after a look at what it has done"}
}

// begin gives an execution its journal, with what it goes on with. Without resume a program runs also where there can be none.
func (g *Gateway) begin(ctx context.Context, run *toolcall.Execution, program execution.Program, before *resumed) error {
	if g.recorder.root == "" {
		return nil
	}
	h, err := header(run, program, before)
	if err != nil {
		return err
	}
	var carried []journal.Call
	if before != nil {
		run.Root = h.Root
		g.flows.note(trailKey(ctx), run, before.end.Record.Read...)
		var answers *replay
		answers, carried = newReplay(before.file.Contents, before.end, before.same, before.only)
		answers.gateway, run.Replay = g, answers
	}
	opts := &journal.Options{}
	if g.cfg.Load().Journal.Keep == 0 {
		opts.Results = -1
	}
	run.Journal, err = journal.Create(g.recorder.folder(run.Principal), h, carried, opts)
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
	kept, err := json.Marshal(keptProgram{
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
