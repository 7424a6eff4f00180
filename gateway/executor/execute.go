package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/codegen/bundle"
	"sallyport/codegen/runtime"
	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/replay"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
)

// Execute runs a program in a sandbox of its own and returns the result. A
// fault of the program, also in its syntax, is a result. Errors are
// *tool.Error, for an invalid request and for a machine that cannot run
// sandboxes.
func (ex *Executor) Execute(ctx context.Context, program execution.Program) (execution.Result, error) {
	if err := toolcall.Unavailable(ex.opts.Records.Available()); err != nil {
		return execution.Result{}, err
	}
	before, err := ex.opts.Replay.Resume(ctx, &program)
	if err != nil {
		return execution.Result{}, err
	}
	defer before.Close()
	ctx = tool.WithEndpoint(ctx, program.Endpoint)
	if before == nil { // a resumed program has the code that was recorded
		if err := ex.opts.Workspaces.LoadProgram(ctx, &program); err != nil {
			return execution.Result{}, err
		}
	}
	job, err := ex.prepare(ctx, &program)
	if err != nil {
		return execution.Result{}, err
	}
	ex.opts.Catalog.AwaitNamed(ctx, program.Code)
	catalog.AwaitLogins(ctx, ex.opts.Catalog, program.Code, program.Peer, ex.opts.Endpoints.Of(ctx).MayHave)
	return ex.executeTraced(ctx, job, program, before)
}

// prepare checks a program and makes a job of it.
func (ex *Executor) prepare(ctx context.Context, program *execution.Program) (sandbox.Job, error) {
	if program.File == "" {
		program.Code, program.Language = execution.CleanCode(program.Code, program.Language)
	}
	interpreter, err := execution.Interpreter(program.Language)
	if err != nil {
		return sandbox.Job{}, err
	}
	program.Environment = ex.opts.Environments.ResolveName(ctx, program.Environment)
	if err := checkCode(program.Code); err != nil {
		return sandbox.Job{}, err
	}
	if ex.opts.Check != nil {
		if err := ex.opts.Check(ctx, program.Code, execution.LanguageName(interpreter)); err != nil {
			return sandbox.Job{}, err
		}
	}
	if err := ex.checkInputs(*program); err != nil {
		return sandbox.Job{}, err
	}
	if err := ex.checkID(ctx, program.ID); err != nil {
		return sandbox.Job{}, err
	}
	job := sandbox.Job{ID: cmp.Or(program.ID, execution.NewID()), Interpreter: interpreter, Code: program.Code, File: program.File, Variables: program.Variables, Prelude: program.Prelude, Limits: ex.Limits(*program)}
	if program.Workspace, err = workspaces.Name(ctx, program.Workspace); err != nil {
		return sandbox.Job{}, err
	}
	if p := program.Isolation; p != "" && p != execution.IsolationProgram {
		return sandbox.Job{}, toolcall.NotOneOf("isolation", p, "use program, or leave it out")
	}
	if job.Session, err = sessionKey(ctx, program.Session, ex.opts.Workspaces.Key(ctx, program.Workspace)); err != nil {
		return sandbox.Job{}, err
	}
	if err = ex.opts.Environments.EnsureFor(ctx, &job, program.Environment, job.Limits.Timeout); err != nil {
		return sandbox.Job{}, err
	}
	return job, ex.opts.Workspaces.SaveProgram(ctx, program, interpreter)
}

// execute runs a job and records it.
func (ex *Executor) execute(ctx context.Context, job sandbox.Job, program execution.Program, before *replay.Resumed) (execution.Result, error) {
	e := execution.Result{ID: job.ID, Language: execution.LanguageName(job.Interpreter), Limits: job.Limits}
	program.Language = e.Language
	if err := ex.sandboxes.retain(); err != nil {
		return execution.Result{}, err
	}
	defer ex.sandboxes.release()
	running := program.Execution(ctx, job.ID)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x := ex.track(running, program, stop)
	defer ex.active.remove(x)
	counted, err := charge(ctx, &ex.opts, &job, &e, program)
	if err != nil {
		return execution.Result{}, err
	}
	defer counted.Undo()
	if err := ex.admit(ctx, &e, x); err != nil {
		return ex.endUnadmitted(ctx, program, e, x, err)
	}
	defer x.slot.end()
	if program.OnStart != nil {
		program.OnStart(job.ID)
	}
	started := time.Now()
	if err := ex.opts.Replay.Begin(ctx, running, program, before); err != nil {
		return execution.Result{}, err
	}
	if err := ex.opts.Auditor.RecordStart(ctx, &e, program); err != nil {
		ex.opts.Replay.Undo(ctx, running, before)
		return execution.Result{}, err
	}
	if err := ex.run(ctx, job, program, &e, x); err != nil {
		ex.opts.Replay.Undo(ctx, running, before)
		ex.opts.Auditor.RecordEnd(ctx, &e, program, started, running.Calls, err)
		if cause := errors.Unwrap(err); cause != nil {
			ex.opts.Logger.ErrorContext(ctx, "program could not be run", "execution", e.ID, "error", cause)
		}
		return execution.Result{}, err
	}
	settle(counted, &e)
	x.shown.show(e.Emitted)
	if running.Replay != nil {
		e.Notes = append(e.Notes, running.Replay.Notes()...)
	}
	noteCanceled(ctx, &e.Outcome)
	noteFailures(&e, running.Calls, program.Code)
	ex.hideSecrets(&e)
	e.Resume, e.Journaled = ex.opts.Replay.ResumeID(&e, running), running.Journal != nil
	ex.explain(ctx, &e, program.Code)
	nameLines(e.Fault, program.File)
	ex.explainMissing(ctx, &e, job.Interpreter, program.Environment)
	explainLanguage(e.Fault, job.Interpreter, program.Code)
	ex.explainInstall(&e, job.Interpreter, program)
	explainNetwork(ctx, ex, &e, program.Code)
	ex.explainTools(ctx, &e, program.Code)
	explainHeld(ctx, ex.opts, &e)
	ex.reviewResults(&e, running.Calls, program.Code)
	noteCode(&e, program)
	if e.Fault != nil {
		ex.opts.Skills.Explain(ctx, e.Fault.Lines)
	}
	ex.opts.History.Add(ctx, program, &e, started, running, ex.opts.Guard.ExecutionOrigins(ctx, running)) // which says if it was taken over
	ex.opts.Auditor.RecordEnd(ctx, &e, program, started, running.Calls, nil)
	ex.opts.Skills.OnExecutionEnd(ctx, e)
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

// run runs a program and checks its types at the same time.
func (ex *Executor) run(ctx context.Context, job sandbox.Job, program execution.Program, e *execution.Result, x *active) error {
	running := x.Execution
	ws, err := ex.opts.Workspaces.OpenFor(ctx, program, e.Limits)
	if err != nil {
		return err
	}
	if ws != nil {
		defer func() { _ = ws.Close() }()
		if err := workspaces.CheckSize(ws, program.Workspace, e.Limits); err != nil {
			return err
		}
		noting := &workspaces.Tracked{Space: ex.opts.Guard.WatchFiles(ctx, ws, program.Workspace, running)}
		defer func() { e.Files = noting.Changes() }()
		ws = noting
		job.Workspace = ws
	}
	code := job.Code
	job.OnOutput = x.output.write
	if err := ex.compile(ctx, &job, program, ws, e); err != nil || e.Fault != nil {
		return err
	}
	known := ex.usedBefore(ctx, job)
	var check *check // nil for a file and with a prelude: the checkers do not see the other files and names
	if program.File == "" && program.Prelude == "" {
		check = ex.checks.begin(ctx, job.Interpreter, code)
	}
	ex.setOwner(ctx, &job, program, running)
	within, ended := running.Suspension.Context(ctx)
	err = attempt{ex, job, e, x, known}.run(within)
	ended()
	if e.Status == sandbox.TimedOut {
		if took, of := running.Calls.FirstPending(e.Limits.Timeout / 2); took > 0 {
			e.Unanswered = fmt.Sprintf("%s did not answer for %.1f s", of, took.Seconds())
		}
	}
	x.output.end()
	ex.opts.Approver.FinishSuspended(ctx, e, running)
	e.Warnings = programWarnings(ctx, check, e.Outcome, known || len(job.Variables) > 0)
	if e.Status == sandbox.OK {
		e.Warnings = ex.certain(e.Warnings, running.Calls)
	}
	e.Notes = ex.opts.Workspaces.NewNotes(ctx, program.Workspace, e.Notes)
	if known && !e.Reused && e.Status != sandbox.Canceled {
		e.Notes = append(e.Notes, "session "+program.Session+" had ended: no variable of its earlier programs is left")
	}
	return err
}

// setOwner lets programs of one principal at one endpoint that have read data with the same labels share a sandbox.
func (ex *Executor) setOwner(ctx context.Context, job *sandbox.Job, program execution.Program, running *toolcall.Execution) {
	if program.Isolation == execution.IsolationProgram || ex.admission.limits().Reuse != config.ReusePrincipal || ex.opts.Guard.Isolates(ctx, running) {
		return
	}
	job.OwnerAfter = func() string {
		var labels []string
		for _, o := range ex.opts.Guard.ExecutionOrigins(ctx, running) {
			labels = append(labels, o.Label)
		}
		slices.Sort(labels)
		return fmt.Sprintf("%q %q %q", running.Principal, labels, running.Endpoint) // the principal is "" without authentication
	}
	job.Owner = job.OwnerAfter()
}

// compile compiles a job in TypeScript to JavaScript. A compile error is the outcome of the program.
func (ex *Executor) compile(ctx context.Context, job *sandbox.Job, program execution.Program, ws workspaces.Space, e *execution.Result) error {
	if job.Interpreter != sandbox.Node {
		return nil
	}
	opts := ex.bundleOptions(ctx, *job)
	opts.File, opts.Files = program.File, fileReader(ws)
	compiled, err := bundle.Compile(job.Code, ex.snapshot(ctx), runtime.TypeScript, opts)
	if wrong, ok := errors.AsType[*bundle.Error](err); ok {
		e.Outcome = sandbox.Outcome{Status: sandbox.Failed, Fault: compileFault(wrong)}
		if slices.Contains(networkPackages, wrong.Package) {
			e.Fault.Hint = adviseNetwork(ctx, ex)
			return nil
		}
		if wrong.Package != "" && deps.Check(sandbox.Node, []string{wrong.Package}) == nil && job.Environment != "" {
			e.Fault.Message, e.Fault.Hint = fmt.Sprintf("Cannot find package '%s'", wrong.Package), "" // explainMissing adds a hint
		}
		return nil
	}
	if err != nil {
		return &tool.Error{Kind: tool.Internal, Message: "the program could not be compiled", Err: err}
	}
	job.Code = compiled
	return nil
}

// snapshot returns the tools that exist for the caller.
func (ex *Executor) snapshot(ctx context.Context) *catalog.Snapshot {
	all := ex.opts.Catalog.Snapshot()
	if only := ex.opts.Endpoints.Of(ctx); only != nil {
		return only.Part(all).Snapshot
	}
	return all
}

// MaxTimeout returns how long a program may run by the current settings.
func (ex *Executor) MaxTimeout() time.Duration { return ex.Limits(execution.Program{}).Timeout }

// checkID rejects an invalid id, and the id of an earlier execution.
func (ex *Executor) checkID(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	if !execution.IDPattern.MatchString(id) {
		return &tool.Error{Kind: tool.Invalid, Message: "invalid execution id " + sanitize.Line(id, 60)}
	}
	_, err := ex.opts.History.Record(ctx, id)
	if err == nil {
		return &tool.Error{Kind: tool.Invalid, Message: "execution " + id + " already exists", Hint: "resume it"}
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
// program's lines, and whether an imported upstream is not available.
func (ex *Executor) explain(ctx context.Context, e *execution.Result, code string) {
	if e.Fault == nil {
		return
	}
	source := strings.Split(code, "\n")
	for i := range e.Fault.Lines {
		if line := &e.Fault.Lines[i]; line.File == "" && line.Source == "" && line.Line > 0 && line.Line <= len(source) {
			line.Source = sanitize.Head(strings.TrimSpace(source[line.Line-1]), 400)
		}
	}
	for _, up := range ex.opts.Upstreams(ctx) {
		problem := up.Problem()
		if problem == "" || up.State.Tools > 0 {
			continue
		}
		if imports(e.Fault.Message, up.ID) || e.Fault.Hint == "" && imports(code, up.ID) {
			e.Fault.Hint = "upstream " + up.ID + " is not available: " + problem
		}
	}
}

// imports reports whether text imports the package of an upstream, in either
// language. An id has only letters, digits and underscores.
func imports(text, id string) bool {
	named, err := regexp.MatchString(`\bservers[./]`+id+`\b|from servers import .*\b`+id+`\b|import .*\b`+id+`\b.* from ["']servers["']`, text)
	return err == nil && named
}

// nameLines sets the file name in the lines of a fault, for a program that is a file.
func nameLines(fault *bridge.Fault, name string) {
	if fault == nil {
		return
	}
	for i := range fault.Lines {
		fault.Lines[i].File = cmp.Or(fault.Lines[i].File, name)
	}
}

// fileReader returns a function that reads the files of a workspace that a program imports; nil without a workspace.
func fileReader(ws workspaces.Space) func(name string) ([]byte, bool) {
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

// maxModule is the maximum size of an imported file of a workspace, in bytes.
const maxModule = 4 << 20

// bundleOptions returns the options with which a program of the caller is compiled.
func (ex *Executor) bundleOptions(ctx context.Context, job sandbox.Job) *bundle.Options {
	return &bundle.Options{
		Session: job.Session != "", Packages: ex.opts.Environments.NodePackages(job.Environment),
		Skills: func(name string) (map[string][]byte, error) { return ex.opts.Skills.Files(ctx, name) },
	}
}

// Bundle compiles a program in TypeScript to JavaScript, with the skills that it imports. An error may be a *[bundle.Error].
func (ex *Executor) Bundle(ctx context.Context, job sandbox.Job, code string) (string, error) {
	return bundle.Compile(code, ex.snapshot(ctx), runtime.TypeScript, ex.bundleOptions(ctx, job))
}

// RunWithoutTools runs an internal program of the gateway. It has no tools, needs no slot and is not recorded.
func (ex *Executor) RunWithoutTools(ctx context.Context, job sandbox.Job) (sandbox.Outcome, error) {
	return ex.sandboxes.Run(ctx, job, toolcall.NoTools{})
}

// RunTests runs the tests of a skill that is about to be saved, with the rights of the caller.
func (ex *Executor) RunTests(ctx context.Context, job sandbox.Job, program execution.Program, candidate *skill.Skill) (execution.Result, error) {
	e := execution.Result{ID: job.ID, Language: program.Language, Limits: job.Limits}
	running := program.Execution(ctx, job.ID)
	running.Candidate = candidate
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x := ex.track(running, program, stop)
	defer ex.active.remove(x)
	counted, err := charge(ctx, &ex.opts, &job, &e, program)
	if err != nil {
		return e, err
	}
	defer counted.Undo()
	if err := ex.admit(ctx, &e, x); err != nil {
		return e, err
	}
	defer x.slot.end()
	started := time.Now()
	if err := ex.opts.Auditor.RecordStart(ctx, &e, program); err != nil {
		return e, err
	}
	within, ended := running.Suspension.Context(ctx)
	e.Outcome, err = ex.sandboxes.Run(within, job, agent{ex, x})
	ended()
	if err == nil {
		settle(counted, &e)
	}
	ex.opts.Approver.FinishSuspended(ctx, &e, running)
	ex.opts.Auditor.RecordEnd(ctx, &e, program, started, running.Calls, err)
	return e, err
}

// executeTraced runs a job within a trace span, and updates metrics.
func (ex *Executor) executeTraced(ctx context.Context, job sandbox.Job, program execution.Program, before *replay.Resumed) (execution.Result, error) {
	t, language := ex.opts.Telemetry, execution.LanguageName(job.Interpreter)
	begun := time.Now()
	ctx, span := t.Start(ctx, telemetry.Internal, "execute_code", language)
	span.Set(telemetry.ExecutionID, job.ID)
	span.Set("sallyport.language", language)
	e, err := ex.execute(ctx, job, program, before)
	if err != nil {
		kind := tool.AsError(err).Kind
		span.End(string(kind))
		if kind == tool.Busy {
			t.RecordRefusal(ctx, "busy")
		}
		return e, err
	}
	span.SetInt("sallyport.queued.ms", e.Queued.Milliseconds())
	span.SetInt("sallyport.calls", int64(e.Calls))
	span.SetInt("sallyport.stdout.bytes", int64(len(e.Stdout.Text))+e.Stdout.Cut)
	span.End(string(e.Status))
	t.RecordExecution(ctx, telemetry.Execution{Language: language, Status: string(e.Status), Duration: time.Since(begun), Queued: e.Queued})
	return e, nil
}
