// Package execution has the input and output of an execution: the program, its limits, the result and its text for a model.
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
	// ID is the id of the execution, from [NewID], for a caller that must know it in advance, to resume the execution after a
	// crash. "" creates one.
	ID   string
	Code string
	// Language is "python" or "typescript", or a common short name; "" is python, unless Code is certainly TypeScript.
	Language string
	// Timeout shortens the limit in the settings; 0 keeps it.
	Timeout time.Duration
	// Memory, in bytes, is an error if it exceeds the settings. A lower value has no effect.
	Memory int64
	// Variables are set in the program, each a JSON value.
	Variables map[string]json.RawMessage
	// Prelude is a module in Python that gives the program names without imports, see [sandbox.Job]; "" is none.
	Prelude string
	// Session, if set, keeps the interpreter's state for the next program with the same session name,
	// language and environment, of the same principal and client: letters, digits and ".-_", at most 64.
	Session string
	// Isolation "program" gives it a sandbox that no other program uses; "" is as the settings say.
	Isolation string
	// Environment names one of the settings; "" is the default one.
	Environment string
	// Workspace names the workspace at /workspace, the principal's own or mapped by the settings; "" is
	// the one of the request, or else "default".
	Workspace string
	// File is the path of a file in the workspace to run instead of Code. Its extension selects the language.
	File string
	// SaveAs is the path of a file in the workspace to write Code to before it runs; a name without an
	// extension gets that of the language. "" saves nothing.
	SaveAs string
	// Peer answers approvals and requests of upstreams during calls; nil for none.
	Peer tool.Peer
	// Folder, if set, is a local folder in place of the workspace, for tests of workflows.
	Folder string
	// Stub, if set, answers all calls of the program, which then bypass policy, guard and upstreams, for tests of workflows.
	Stub func(ctx context.Context, c tool.Call) (tool.Result, error)
	// OnStart is called with the id of the execution before it runs; nil for none.
	OnStart func(id string)
	// OnOutput is called with the program's output, in order. It must not block; nil for none.
	OnOutput func(Printed)
	// Value is the maximum size of the program's value in bytes; 0 is the limit in the settings.
	Value int
	// Resume is the id of a failed execution of the caller. Its program, or Code if set, runs again: calls that were already
	// made are answered from its journal.
	Resume string
	// After, instead of Resume, are the previous executions of the same step, the newest last. The newest that has a journal counts: its
	// calls that may have been done are repeated only after confirmation by a person; all others are made again. With Retry, calls that
	// are known to have failed need no confirmation.
	After []string
	Retry bool
	// Endpoint confines it to the tools of an endpoint, in addition to that of its caller; "" does not. A resumed program has
	// that of the earlier one.
	Endpoint string
}

// IsolationProgram is the value of Program.Isolation for a sandbox of its own.
const IsolationProgram = "program"

// MaxCode is the largest program, in bytes.
const MaxCode = 1 << 20

// Result is the result of a program.
type Result struct {
	ID       string
	Language string
	sandbox.Outcome
	// Queued is how long it waited for a slot.
	Queued time.Duration
	// Limits are the limits that were in force.
	Limits sandbox.Limits
	// Approvals are the approvals that it waits for, with status [Held].
	Approvals []approval.Approval
	// Resume is its ID if it failed after calls that should not be repeated: a [Program] can resume it.
	Resume string
	// Files are the files of the workspace that it changed, by path, at most 1,000.
	Files []FileChange
	// Warnings are the type errors of a failed program, the nearest to its fault first, or what is certainly wrong in one
	// that succeeded.
	Warnings []typecheck.Warning

	Journaled bool // it can be resumed
	// Unanswered is the call that it spent most of its time on, for status [sandbox.TimedOut]: "x.y did not answer for 59 s".
	Unanswered string
	Cost       *Cost
}

// Held is the status of an execution that was stopped because a call waits for approval. The execution that
// resumes it does not repeat the calls in its journal.
const Held sandbox.Status = "held"

// Interrupted is the status of an execution that was running when its gateway was killed, or when the machine that ran it was lost and
// it could not be run again.
const Interrupted sandbox.Status = "interrupted"

// ErrNoWorker means that a program was not started, as no worker takes programs now. Workers come back by themselves after an outage.
var ErrNoWorker = sandbox.ErrNoWorker

// NewID returns a new, unique id for an execution.
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

// DefaultWorkspace is the workspace of programs that name none.
const DefaultWorkspace = "default"

// Printed is a piece of a program's output, cleaned as in the answer: without invisible characters and secrets of the settings, and
// with carriage returns as newlines.
type Printed struct {
	// Stream is "stdout" or "stderr".
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

// Limits returns the limits in the settings, lowered by those of the program.
func (p Program) Limits(box config.Sandbox) sandbox.Limits {
	limits := sandbox.Limits{
		Timeout: box.Timeout, Memory: int64(box.Memory), Processes: box.Processes, OpenFiles: box.OpenFiles,
		CPU: box.CPU, FileSize: int64(box.FileSize), Workspace: int64(box.Workspace), Inodes: box.Inodes,
		Output: int(box.Output), Value: int(box.Output), Calls: box.Calls, Concurrency: box.Concurrency, Traffic: int64(box.Traffic),
	}
	if p.Timeout > 0 {
		limits.Timeout = min(limits.Timeout, inSeconds(p.Timeout, limits.Timeout))
	}
	if p.Value > 0 {
		limits.Value = p.Value
	}
	return limits
}

// inSeconds returns a timeout that a caller gave in seconds. One beyond the limit that is 5,000 or more, in steps of 500, was
// meant in milliseconds: 30000.
func inSeconds(timeout, limit time.Duration) time.Duration {
	const step = 500 * time.Second
	if timeout > limit && timeout >= 10*step && timeout%step == 0 {
		return timeout / 1000
	}
	return timeout
}

// Execution returns the execution of the program, on behalf of the caller in ctx.
func (p Program) Execution(ctx context.Context, id string) *toolcall.Execution {
	r := toolcall.NewExecution(ctx, id)
	r.Workspace, r.Peer, r.Stub = p.Workspace, p.Peer, p.Stub
	return r
}
