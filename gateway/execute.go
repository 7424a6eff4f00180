package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/codegen/bundle"
	"sallyport/codegen/runtime"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// Program is what Execute runs.
type Program struct {
	Code string
	// Language is "python" or "typescript"; "" is python. The usual short names are understood.
	Language string
	// Timeout shortens the limit of the settings; 0 leaves it.
	Timeout time.Duration
}

// Execution is one program that has been run.
type Execution struct {
	ID       string
	Language string
	sandbox.Outcome
	// Limits are those that were in force.
	Limits sandbox.Limits
}

// maxCode is the largest program, in bytes.
const maxCode = 1 << 20

// Execute runs a program in a sandbox of its own and returns how that went. A
// fault of the program, be it in its syntax, is an outcome. Errors are
// *tool.Error, for a request that makes no sense and for a machine that cannot
// run sandboxes.
func (g *Gateway) Execute(ctx context.Context, program Program) (Execution, error) {
	interpreter, err := interpreterFor(program.Language)
	if err != nil {
		return Execution{}, err
	}
	if strings.TrimSpace(program.Code) == "" || len(program.Code) > maxCode {
		return Execution{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("code must be 1 to %d bytes, not %d", maxCode, len(program.Code))}
	}
	g.Settle(ctx)
	e := Execution{ID: newID(), Language: languageName(interpreter), Limits: g.limits(program)}
	job := sandbox.Job{ID: e.ID, Interpreter: interpreter, Code: program.Code, Limits: e.Limits}
	if interpreter == sandbox.Node {
		job.Code, err = bundle.Compile(program.Code, g.catalog.current(), runtime.TypeScript)
		if wrong, ok := errors.AsType[*bundle.Error](err); ok {
			e.Outcome = sandbox.Outcome{Status: sandbox.Failed, Fault: compileFault(wrong)}
			g.explain(&e, program.Code)
			return e, nil
		}
		if err != nil {
			return Execution{}, &tool.Error{Kind: tool.Internal, Message: "the program could not be compiled", Err: err}
		}
	}
	host, err := g.runner.get()
	if err != nil {
		return Execution{}, &tool.Error{Kind: tool.Internal, Message: "programs cannot be run: " + err.Error(), Hint: "the operator's `sallyport doctor` says how to mend it", Err: err}
	}
	if e.Outcome, err = host.Run(ctx, job, g); err != nil {
		g.log.Error("start sandbox", "execution", e.ID, "error", err)
		return Execution{}, &tool.Error{Kind: tool.Internal, Message: "the sandbox could not be started", Hint: "try again; if it stays, the operator's `sallyport doctor` says why", Err: err}
	}
	g.explain(&e, program.Code)
	return e, nil
}

func (g *Gateway) limits(program Program) sandbox.Limits {
	box := g.cfg.Sandbox
	limits := sandbox.DefaultLimits()
	limits.Timeout, limits.Memory, limits.Workspace = box.Timeout, int64(box.Memory), int64(box.Workspace)
	limits.Processes, limits.OpenFiles = box.Processes, box.OpenFiles
	limits.Output, limits.Value = int(box.Output), int(box.Output)
	limits.Calls, limits.Concurrency = box.Calls, box.Concurrency
	if program.Timeout > 0 {
		limits.Timeout = min(limits.Timeout, program.Timeout)
	}
	return limits
}

var languages = map[string]sandbox.Interpreter{
	"": sandbox.Python, "python": sandbox.Python, "py": sandbox.Python, "python3": sandbox.Python,
	"typescript": sandbox.Node, "ts": sandbox.Node, "javascript": sandbox.Node, "js": sandbox.Node,
}

func interpreterFor(name string) (sandbox.Interpreter, error) {
	if interpreter, ok := languages[strings.ToLower(strings.TrimSpace(name))]; ok {
		return interpreter, nil
	}
	return "", &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown language %.40q", name), Hint: "use python or typescript"}
}

func languageName(i sandbox.Interpreter) string {
	if i == sandbox.Node {
		return "typescript"
	}
	return "python"
}

func newID() string { return "e-" + strings.ToLower(rand.Text()[:12]) }

func compileFault(e *bundle.Error) *bridge.Fault {
	fault := &bridge.Fault{Type: e.Type, Message: e.Message, Hint: e.Hint}
	if e.Line > 0 {
		fault.Lines = []bridge.Line{{Line: e.Line, Source: e.Source}}
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
		if line := &e.Fault.Lines[i]; line.Source == "" && line.Line > 0 && line.Line <= len(source) {
			line.Source = strings.TrimSpace(source[line.Line-1])
		}
	}
	if !strings.Contains(e.Fault.Type, "ImportError") && !strings.Contains(e.Fault.Type, "ModuleNotFoundError") {
		return
	}
	for _, m := range g.catalog.members {
		state := m.session.State()
		named := strings.Contains(e.Fault.Message, "servers."+m.cfg.ID) || strings.Contains(e.Fault.Message, "servers/"+m.cfg.ID)
		if named && state.Error != "" {
			e.Fault.Hint = "upstream " + m.cfg.ID + " is not available: " + state.Error
		}
	}
}
