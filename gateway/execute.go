package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"sallyport/codegen/bundle"
	"sallyport/codegen/runtime"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/workspaces"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
)

// Execute runs a program in a sandbox of its own and returns how that went. A
// fault of the program, be it in its syntax, is an outcome. Errors are
// *tool.Error, for a request that makes no sense and for a machine that cannot
// run sandboxes.
func (g *Gateway) Execute(ctx context.Context, program execution.Program) (execution.Result, error) {
	before, err := g.resume(ctx, &program)
	if err != nil {
		return execution.Result{}, err
	}
	defer before.close()
	if before == nil { // else it has the file's code, as it was
		if err := g.Workspaces.LoadProgram(ctx, &program); err != nil {
			return execution.Result{}, err
		}
	}
	job, err := g.prepare(ctx, &program)
	if err != nil {
		return execution.Result{}, err
	}
	g.settleFor(ctx, program.Code)
	return g.tracked(ctx, job, program, before)
}

// prepare checks what was asked for, and makes a job of it.
func (g *Gateway) prepare(ctx context.Context, program *execution.Program) (sandbox.Job, error) {
	interpreter, err := execution.Interpreter(program.Language)
	if err != nil {
		return sandbox.Job{}, err
	}
	program.Environment = g.Environments.Chosen(ctx, program.Environment)
	if err := checkCode(program.Code); err != nil {
		return sandbox.Job{}, err
	}
	if err := g.checkGiven(*program); err != nil {
		return sandbox.Job{}, err
	}
	if err := g.checkID(ctx, program.ID); err != nil {
		return sandbox.Job{}, err
	}
	job := sandbox.Job{ID: cmp.Or(program.ID, execution.NewID()), Interpreter: interpreter, Code: program.Code, File: program.File, Variables: program.Variables, Limits: g.limits(*program)}
	if program.Workspace, err = workspaces.Name(ctx, program.Workspace); err != nil {
		return sandbox.Job{}, err
	}
	if job.Session, err = sessionKey(ctx, program.Session, g.Workspaces.Key(ctx, program.Workspace)); err != nil {
		return sandbox.Job{}, err
	}
	if job.Environment, err = g.Environments.Ready(ctx, program.Environment, job.Limits.Timeout); err != nil {
		return sandbox.Job{}, err
	}
	return job, g.Workspaces.SaveProgram(ctx, program, interpreter)
}

// execute runs a job and keeps what it was.
func (g *Gateway) execute(ctx context.Context, job sandbox.Job, program execution.Program, before *resumed) (execution.Result, error) {
	e := execution.Result{ID: job.ID, Language: execution.LanguageName(job.Interpreter), Limits: job.Limits}
	program.Language = e.Language
	if err := g.runner.hold(); err != nil {
		return execution.Result{}, err
	}
	defer g.runner.leave()
	running := program.Execution(ctx, job.ID)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x := g.goLive(running, program, stop)
	defer g.lives.remove(x)
	if err := g.admit(ctx, &e, x); err != nil {
		return g.notBegun(ctx, program, e, x, err)
	}
	defer x.seat.end()
	if program.OnStart != nil {
		program.OnStart(job.ID)
	}
	started := time.Now()
	if err := g.begin(ctx, running, program, before); err != nil {
		return execution.Result{}, err
	}
	if err := g.Auditor.RecordStart(ctx, &e, program); err != nil {
		g.undo(ctx, running, before)
		return execution.Result{}, err
	}
	if err := g.run(ctx, job, program, &e, x); err != nil {
		g.undo(ctx, running, before)
		g.Auditor.RecordEnd(ctx, &e, program, started, running.Calls, err)
		if cause := errors.Unwrap(err); cause != nil {
			g.log.ErrorContext(ctx, "program could not be run", "execution", e.ID, "error", cause)
		}
		return execution.Result{}, err
	}
	if running.Replay != nil {
		e.Notes = append(e.Notes, running.Replay.Notes()...)
	}
	noteCanceled(ctx, &e.Outcome)
	g.hideSecrets(&e)
	e.Resume, e.Journaled = g.canResume(&e, running), running.Journal != nil
	g.explain(&e, program.Code)
	nameLines(e.Fault, program.File)
	g.explainMissing(&e, job.Interpreter, program.Environment)
	if e.Fault != nil {
		g.explainSkills(ctx, e.Fault.Lines)
	}
	g.Auditor.RecordEnd(ctx, &e, program, started, running.Calls, nil)
	g.History.Add(ctx, program, &e, started, running, g.Guard.ReadBy(ctx, running))
	g.skills.ended(ctx, e)
	return e, nil
}

func checkCode(code string) error {
	if n := len(code); n == 0 || n > execution.MaxCode {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("code must be 1 to %d bytes, not %d", execution.MaxCode, n)}
	}
	if strings.TrimSpace(code) == "" {
		return &tool.Error{Kind: tool.Invalid, Message: "code is blank"}
	}
	return nil
}

// run runs a program and has its types checked meanwhile.
func (g *Gateway) run(ctx context.Context, job sandbox.Job, program execution.Program, e *execution.Result, x *live) error {
	running := x.Execution
	ws, err := g.Workspaces.OpenFor(ctx, program, e.Limits)
	if err != nil {
		return err
	}
	if ws != nil {
		defer func() { _ = ws.Close() }()
		if err := workspaces.Fits(ws, program.Workspace, e.Limits); err != nil {
			return err
		}
		noting := &workspaces.Tracked{Space: g.Guard.WatchFiles(ctx, ws, program.Workspace, running)}
		defer func() { e.Files = noting.Changes() }()
		ws = noting
		job.Workspace = ws
	}
	code := job.Code
	job.Printed = x.output.printed
	if err := g.compile(ctx, &job, program, ws, e); err != nil || e.Fault != nil {
		return err
	}
	known := g.usedBefore(ctx, job)
	var check *check // of a file, which the checkers do not see the neighbours of, there is none
	if program.File == "" {
		check = g.checks.begin(ctx, job.Interpreter, code)
	}
	within, ended := running.Suspension.Context(ctx)
	e.Outcome, err = g.runner.Run(within, job, agent{g, x})
	ended()
	if e.Status == sandbox.TimedOut {
		if took, of := running.Calls.Unanswered(e.Limits.Timeout / 2); took > 0 {
			e.Unanswered = fmt.Sprintf("%s did not answer for %.1f s", of, took.Seconds())
		}
	}
	x.output.end()
	g.Approver.Settle(ctx, e, running)
	e.Warnings = warnings(ctx, check, e.Fault, known || len(job.Variables) > 0)
	e.Notes = g.Workspaces.NewNotes(ctx, program.Workspace, e.Notes)
	if known && !e.Reused && e.Status != sandbox.Canceled {
		e.Notes = append(e.Notes, "session "+program.Session+" had ended: no variable of its earlier programs is left")
	}
	return err
}

// compile makes JavaScript of a job in TypeScript. What is wrong with the program is its outcome.
func (g *Gateway) compile(ctx context.Context, job *sandbox.Job, program execution.Program, ws workspaces.Space, e *execution.Result) error {
	if job.Interpreter != sandbox.Node {
		return nil
	}
	opts := g.bundling(ctx, *job)
	opts.File, opts.Files = program.File, readable(ws)
	compiled, err := bundle.Compile(job.Code, g.catalog.current(), runtime.TypeScript, opts)
	if wrong, ok := errors.AsType[*bundle.Error](err); ok {
		e.Outcome = sandbox.Outcome{Status: sandbox.Failed, Fault: compileFault(wrong)}
		if wrong.Package != "" && deps.Check(sandbox.Node, []string{wrong.Package}) == nil && job.Environment != "" {
			e.Fault.Message, e.Fault.Hint = fmt.Sprintf("Cannot find package '%s'", wrong.Package), "" // explainMissing knows more
		}
		return nil
	}
	if err != nil {
		return &tool.Error{Kind: tool.Internal, Message: "the program could not be compiled", Err: err}
	}
	job.Code = compiled
	return nil
}

// MaxTimeout is how long a program may run by the settings as they are now.
func (g *Gateway) MaxTimeout() time.Duration { return g.limits(execution.Program{}).Timeout }

// checkID refuses an id that is none, or that an execution of before has.
func (g *Gateway) checkID(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	if !execution.IDPattern.MatchString(id) {
		return &tool.Error{Kind: tool.Invalid, Message: plain.Line(id, 60) + " is no id for an execution"}
	}
	_, err := g.History.Recorded(ctx, id)
	if err == nil {
		return &tool.Error{Kind: tool.Invalid, Message: "there is an execution " + id + " already", Hint: "resume it"}
	}
	if !errors.Is(err, history.ErrNoExecution) {
		return err
	}
	return nil
}

func compileFault(e *bundle.Error) *bridge.Fault {
	fault := &bridge.Fault{Type: e.Type, Message: e.Message, Hint: e.Hint}
	if e.Line > 0 {
		fault.Lines = []bridge.Line{{File: e.File, Line: e.Line, Source: e.Source}}
	}
	return fault
}

// explain adds to a fault what only the gateway knows: the text of the
// program's lines, and that an upstream the program wanted is not there.
func (g *Gateway) explain(e *execution.Result, code string) {
	if e.Fault == nil {
		return
	}
	source := strings.Split(code, "\n")
	for i := range e.Fault.Lines {
		if line := &e.Fault.Lines[i]; line.File == "" && line.Source == "" && line.Line > 0 && line.Line <= len(source) {
			line.Source = plain.Head(strings.TrimSpace(source[line.Line-1]), 400)
		}
	}
	for _, up := range g.Upstreams() {
		problem := up.Problem()
		if problem == "" || up.State.Tools > 0 {
			continue
		}
		if imports(e.Fault.Message, up.ID) || e.Fault.Hint == "" && imports(code, up.ID) {
			e.Fault.Hint = "upstream " + up.ID + " is not available: " + problem
		}
	}
}

// explainMissing says how to come by a package that an import did not find.
func (g *Gateway) explainMissing(e *execution.Result, interpreter sandbox.Interpreter, environment string) {
	if e.Fault == nil {
		return
	}
	_, settings, known, err := g.Environments.Find(environment)
	module := deps.Missing(interpreter, e.Fault.Message)
	if err != nil || module == "" || !known && e.Fault.Hint != "" {
		return
	}
	e.Fault.Hint = deps.Hint(interpreter, module, environment, settings.Install)
}

// imports reports whether text names the package of an upstream, as either
// language does. An id has only letters, digits and underscores.
func imports(text, id string) bool {
	named, err := regexp.MatchString(`\bservers[./]`+id+`\b|from servers import .*\b`+id+`\b|import .*\b`+id+`\b.* from ["']servers["']`, text)
	return err == nil && named
}

// nameLines gives the lines of a program that is a file its name.
func nameLines(fault *bridge.Fault, name string) {
	if fault == nil {
		return
	}
	for i := range fault.Lines {
		fault.Lines[i].File = cmp.Or(fault.Lines[i].File, name)
	}
}

// readable reads files of a workspace that a program imports; nil where there is none.
func readable(ws workspaces.Space) func(name string) ([]byte, bool) {
	if ws == nil {
		return nil
	}
	return func(name string) ([]byte, bool) {
		f, err := ws.Open(name)
		if err != nil {
			return nil, false
		}
		defer func() { _ = f.Content.Close() }()
		if f.Size > maxModule {
			return nil, false
		}
		data, err := io.ReadAll(io.LimitReader(f.Content, maxModule))
		return data, err == nil
	}
}

// maxModule is how large a file of a workspace can be that a program imports, in bytes.
const maxModule = 4 << 20
