package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"sallyport/codegen/bundle"
	"sallyport/codegen/runtime"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/typecheck"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
)

// Program is what Execute runs.
type Program struct {
	// ID is that of the execution, as [NewExecution] gives one, for a caller that must know it before, so that it can be resumed
	// whatever happens to the caller. "" is a new one.
	ID   string
	Code string
	// Language is "python" or "typescript"; "" is python. The usual short names are understood.
	Language string
	// Timeout shortens the limit of the settings; 0 leaves it.
	Timeout time.Duration
	// Memory, in bytes, is refused where it is more than the settings allow. Less changes nothing.
	Memory int64
	// Variables are what the program finds under their names, each a JSON value.
	Variables map[string]json.RawMessage
	// Session, if set, keeps what programs leave in memory for the next one with the same name,
	// language and environment, of the same principal and client: letters, digits and ".-_", at most 64.
	Session string
	// Environment names one of the settings; "" is the default one.
	Environment string
	// Workspace names what is at /workspace, of the principal's own or mapped by the settings; "" is the
	// one of the request, else "default".
	Workspace string
	// File is the path of a file in the workspace that is run, instead of Code. Its ending tells the language.
	File string
	// SaveAs is the path of a file in the workspace that gets Code before it runs, and is run then; a
	// name without an ending gets that of the language. "" saves nothing.
	SaveAs string
	// Peer is asked what the program's calls need of a person: approvals, and what upstreams ask; nil is nobody.
	Peer tool.Peer
	// Folder, where it is set, is a folder of this machine in place of the workspace: for tests of workflows.
	Folder string
	// Instead, where it is set, answers all calls of the program, and nothing of them reaches policy, the guard or an upstream:
	// for tests of workflows, which have stubs.
	Instead func(ctx context.Context, c tool.Call) (tool.Result, error)
	// Begun hears the id of the execution when it is its turn, before it runs; nil is nobody.
	Begun func(id string)
	// Printed gets what it prints, as it does, in order. It must not block; nil is nobody.
	Printed func(Printed)
	// Value is how many bytes of the program's value are kept; 0 leaves it to the settings.
	Value int
	// Resume is the id of an execution of the caller's that did not end well. Its program, or Code if there is any, runs
	// again: calls that were made are answered from its journal, and only what is new is done.
	Resume string
	// After is, in place of Resume, an execution of the caller's before this one of the same step: calls of it that may have been done
	// are not repeated before a person has said so; all others are made again. Retry leaves out those that are known to have failed.
	After string
	Retry bool
}

// Execution is one program that has been run.
type Execution struct {
	ID       string
	Language string
	sandbox.Outcome
	// Queued is for how long it waited for its turn.
	Queued time.Duration
	// Limits are those that were in force.
	Limits sandbox.Limits
	// Approvals are what it waits for, with status [Held].
	Approvals []Approval
	// Resume is its ID where it failed after calls that should not be made again, for a [Program] to go on with.
	Resume string
	// Files are those of the workspace that it has changed, by path, at most 1,000.
	Files []FileChange
	// Warnings are what the types say of a program that failed, the nearest to its fault first.
	Warnings []typecheck.Warning

	journaled bool // it can be gone on with
	// pending is the call that it spent most of its time on, for status [sandbox.TimedOut]: "x.y did not answer for 59 s".
	pending string
	tally   *tally
}

// maxCode is the largest program, in bytes.
const maxCode = 1 << 20

// Execute runs a program in a sandbox of its own and returns how that went. A
// fault of the program, be it in its syntax, is an outcome. Errors are
// *tool.Error, for a request that makes no sense and for a machine that cannot
// run sandboxes.
func (g *Gateway) Execute(ctx context.Context, program Program) (Execution, error) {
	before, err := g.resume(ctx, &program)
	if err != nil {
		return Execution{}, err
	}
	defer before.close()
	if before == nil { // else it has the file's code, as it was
		if err := g.readFile(ctx, &program); err != nil {
			return Execution{}, err
		}
	}
	job, err := g.prepare(ctx, &program)
	if err != nil {
		return Execution{}, err
	}
	g.settleFor(ctx, program.Code)
	return g.tracked(ctx, job, program, before)
}

// prepare checks what was asked for, and makes a job of it.
func (g *Gateway) prepare(ctx context.Context, program *Program) (sandbox.Job, error) {
	interpreter, err := interpreterFor(program.Language)
	if err != nil {
		return sandbox.Job{}, err
	}
	program.Environment = g.environmentOf(ctx, program.Environment)
	if err := checkCode(program.Code); err != nil {
		return sandbox.Job{}, err
	}
	if err := g.checkGiven(*program); err != nil {
		return sandbox.Job{}, err
	}
	if err := g.checkID(ctx, program.ID); err != nil {
		return sandbox.Job{}, err
	}
	job := sandbox.Job{ID: cmp.Or(program.ID, NewExecution()), Interpreter: interpreter, Code: program.Code, File: program.File, Variables: program.Variables, Limits: g.limits(*program)}
	if program.Workspace, err = workspaceName(ctx, program.Workspace); err != nil {
		return sandbox.Job{}, err
	}
	if job.Session, err = sessionKey(ctx, program.Session, g.workspaceKey(ctx, program.Workspace)); err != nil {
		return sandbox.Job{}, err
	}
	if job.Environment, err = g.environmentFor(ctx, program.Environment, job.Limits.Timeout); err != nil {
		return sandbox.Job{}, err
	}
	return job, g.saveProgram(ctx, program, interpreter)
}

// execute runs a job and keeps what it was.
func (g *Gateway) execute(ctx context.Context, job sandbox.Job, program Program, before *resumed) (Execution, error) {
	e := Execution{ID: job.ID, Language: languageName(job.Interpreter), Limits: job.Limits}
	program.Language = e.Language
	if err := g.runner.hold(); err != nil {
		return Execution{}, err
	}
	defer g.runner.leave()
	running := program.running(ctx, job.ID)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	x := g.goLive(running, program, stop)
	defer g.lives.remove(x)
	if err := g.admit(ctx, &e, x); err != nil {
		return g.notBegun(ctx, program, e, x, err)
	}
	defer x.seat.end()
	if program.Begun != nil {
		program.Begun(job.ID)
	}
	started := time.Now()
	if err := g.begin(ctx, running, program, before); err != nil {
		return Execution{}, err
	}
	if err := g.auditStart(ctx, &e, program); err != nil {
		g.undo(ctx, running, before)
		return Execution{}, err
	}
	if err := g.run(ctx, job, program, &e, x); err != nil {
		g.undo(ctx, running, before)
		g.auditEnd(ctx, &e, program, started, running.Calls, err)
		if cause := errors.Unwrap(err); cause != nil {
			g.log.ErrorContext(ctx, "program could not be run", "execution", e.ID, "error", cause)
		}
		return Execution{}, err
	}
	if running.Replay != nil {
		e.Notes = append(e.Notes, running.Replay.Notes()...)
	}
	noteCanceled(ctx, &e.Outcome)
	g.hideSecrets(&e)
	e.Resume, e.journaled = g.canResume(&e, running), running.Journal != nil
	g.explain(&e, program.Code)
	nameLines(e.Fault, program.File)
	g.explainMissing(&e, job.Interpreter, program.Environment)
	if e.Fault != nil {
		g.explainSkills(ctx, e.Fault.Lines)
	}
	g.auditEnd(ctx, &e, program, started, running.Calls, nil)
	g.record(ctx, program, &e, started, running)
	g.skills.ended(ctx, e)
	return e, nil
}

// environmentFor waits for an environment as long as a program in it might run.
func (g *Gateway) environmentFor(ctx context.Context, name string, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return g.environments.ready(ctx, name)
}

func checkCode(code string) error {
	if n := len(code); n == 0 || n > maxCode {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("code must be 1 to %d bytes, not %d", maxCode, n)}
	}
	if strings.TrimSpace(code) == "" {
		return &tool.Error{Kind: tool.Invalid, Message: "code is blank"}
	}
	return nil
}

// run runs a program and has its types checked meanwhile.
func (g *Gateway) run(ctx context.Context, job sandbox.Job, program Program, e *Execution, x *live) error {
	running := x.Execution
	ws, err := g.workspaceOf(ctx, program, e.Limits)
	if err != nil {
		return err
	}
	if ws != nil {
		defer func() { _ = ws.Close() }()
		if err := fits(ws, program.Workspace, e.Limits); err != nil {
			return err
		}
		noting := &changing{space: g.watch(ctx, ws, program.Workspace, running)}
		defer func() { e.Files = noting.list() }()
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
	e.Outcome, err = g.runner.run(within, job, agent{g, x})
	ended()
	if e.Status == sandbox.TimedOut {
		if took, of := running.Calls.Unanswered(e.Limits.Timeout / 2); took > 0 {
			e.pending = fmt.Sprintf("%s did not answer for %.1f s", of, took.Seconds())
		}
	}
	x.output.end()
	g.settleHeld(ctx, e, running)
	e.Warnings = warnings(ctx, check, e.Fault, known || len(job.Variables) > 0)
	if _, ok := g.mapping(ctx, program.Workspace); ok {
		who := []string{tool.Principal(ctx), tool.Session(ctx), program.Workspace}
		e.Notes = g.heard.once(strings.Join(who, "\x00"), e.Notes)
	}
	if known && !e.Reused && e.Status != sandbox.Canceled {
		e.Notes = append(e.Notes, "session "+program.Session+" had ended: no variable of its earlier programs is left")
	}
	return err
}

// compile makes JavaScript of a job in TypeScript. What is wrong with the program is its outcome.
func (g *Gateway) compile(ctx context.Context, job *sandbox.Job, program Program, ws space, e *Execution) error {
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

func interpreterFor(language string) (sandbox.Interpreter, error) {
	switch strings.ToLower(strings.TrimSpace(language)) {
	case "", "python", "py", "python3":
		return sandbox.Python, nil
	case "typescript", "ts", "javascript", "js":
		return sandbox.Node, nil
	}
	return "", toolcall.NotOneOf("language", language, "use python or typescript")
}

func languageName(i sandbox.Interpreter) string {
	if i == sandbox.Node {
		return "typescript"
	}
	return "python"
}

// NewExecution returns an id that no execution has.
func NewExecution() string { return "e-" + strings.ToLower(rand.Text()[:12]) }

var executionID = regexp.MustCompile("^e-[a-z2-7]{12}$")

// MaxTimeout is how long a program may run by the settings as they are now.
func (g *Gateway) MaxTimeout() time.Duration { return g.limits(Program{}).Timeout }

// checkID refuses an id that is none, or that an execution of before has.
func (g *Gateway) checkID(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	if !executionID.MatchString(id) {
		return &tool.Error{Kind: tool.Invalid, Message: plain.Line(id, 60) + " is no id for an execution"}
	}
	_, err := g.Recorded(ctx, id)
	if err == nil {
		return &tool.Error{Kind: tool.Invalid, Message: "there is an execution " + id + " already", Hint: "resume it"}
	}
	if !errors.Is(err, ErrNoExecution) {
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
func (g *Gateway) explain(e *Execution, code string) {
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
func (g *Gateway) explainMissing(e *Execution, interpreter sandbox.Interpreter, environment string) {
	if e.Fault == nil {
		return
	}
	_, settings, known, err := g.environments.find(environment)
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
