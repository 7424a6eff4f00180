// Package execution has what goes into an execution and what comes out of it: the program, its limits, the result and its text for a model.
package execution

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/typecheck"
	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
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
	// Peer answers approvals and requests of upstreams during calls; nil for none.
	Peer tool.Peer
	// Folder, where it is set, is a folder of this machine in place of the workspace: for tests of workflows.
	Folder string
	// Instead, where it is set, answers all calls of the program, and nothing of them reaches policy, the guard or an upstream:
	// for tests of workflows, which have stubs.
	Stub func(ctx context.Context, c tool.Call) (tool.Result, error)
	// OnStart is called with the id of the execution before it runs; nil for none.
	OnStart func(id string)
	// OnOutput is called with the program's output, in order. It must not block; nil for none.
	OnOutput func(Printed)
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

// MaxCode is the largest program, in bytes.
const MaxCode = 1 << 20

// Result is one program that has been run.
type Result struct {
	ID       string
	Language string
	sandbox.Outcome
	// Queued is for how long it waited for its turn.
	Queued time.Duration
	// Limits are those that were in force.
	Limits sandbox.Limits
	// Approvals are what it waits for, with status [Held].
	Approvals []approval.Approval
	// Resume is its ID where it failed after calls that should not be repeated: a [Program] can resume it.
	Resume string
	// Files are those of the workspace that it has changed, by path, at most 1,000.
	Files []FileChange
	// Warnings are what the types say of a program that failed, the nearest to its fault first.
	Warnings []typecheck.Warning

	Journaled bool // it can be gone on with
	// Unanswered is the call that it spent most of its time on, for status [sandbox.TimedOut]: "x.y did not answer for 59 s".
	Unanswered string
	Cost       *Cost
}

// Held is the status of an execution that was stopped since a call of it waits for approval. What it did
// is in its journal: the execution that resumes it does not do that again.
const Held sandbox.Status = "held"

// NewID returns an id that no execution has.
func NewID() string { return "e-" + strings.ToLower(rand.Text()[:12]) }

// IDPattern matches the id of an execution.
var IDPattern = regexp.MustCompile("^e-[a-z2-7]{12}$")

// Interpreter returns the interpreter for the name of a language, "" being Python. Errors are *tool.Error.
func Interpreter(language string) (sandbox.Interpreter, error) {
	switch strings.ToLower(strings.TrimSpace(language)) {
	case "", "python", "py", "python3":
		return sandbox.Python, nil
	case "typescript", "ts", "javascript", "js":
		return sandbox.Node, nil
	}
	return "", toolcall.NotOneOf("language", language, "use python or typescript")
}

// LanguageName returns the name of the language that an interpreter runs.
func LanguageName(i sandbox.Interpreter) string {
	if i == sandbox.Node {
		return "typescript"
	}
	return "python"
}

// DefaultWorkspace is what programs get unasked.
const DefaultWorkspace = "default"

// Printed is something that a program has printed, fit to be shown: as it is in the answer, without what does not show and without
// secrets of the settings. It is no terminal's: a carriage return is a new line.
type Printed struct {
	// Stream is "stdout" or "stderr".
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

// Limits returns the limits of the settings, and of the program where it asks for less.
func (p Program) Limits(box config.Sandbox) sandbox.Limits {
	limits := sandbox.Limits{
		Timeout: box.Timeout, Memory: int64(box.Memory), Processes: box.Processes, OpenFiles: box.OpenFiles,
		CPU: box.CPU, FileSize: int64(box.FileSize), Workspace: int64(box.Workspace), Inodes: box.Inodes,
		Output: int(box.Output), Value: int(box.Output), Calls: box.Calls, Concurrency: box.Concurrency, Traffic: int64(box.Traffic),
	}
	if p.Timeout > 0 {
		limits.Timeout = min(limits.Timeout, p.Timeout)
	}
	if p.Value > 0 {
		limits.Value = p.Value
	}
	return limits
}

// Execution returns the execution of the program, on behalf of the caller in ctx.
func (p Program) Execution(ctx context.Context, id string) *toolcall.Execution {
	r := toolcall.NewExecution(ctx, id)
	r.Workspace, r.Peer, r.Stub = p.Workspace, p.Peer, p.Stub
	return r
}
