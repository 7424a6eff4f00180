// Package sandbox runs programs, each in its own gVisor sandbox: no network, no
// host files except the interpreters', no environment variables, hard limits,
// and one connection to the host, the bridge. Its main type is [Host], one
// machine that can start sandboxes; [Host.Run] runs one program to its end.
//
// Jobs and outcomes are plain values that can be serialized. The package does not
// import the gateway: a worker on another machine can use it alone.
package sandbox

import (
	"encoding/json"
	"time"

	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/slot"
)

// Interpreter is the language runtime that executes a program.
type Interpreter string

// The interpreters. Node runs one JavaScript module; TypeScript is compiled before it gets here.
const (
	Python Interpreter = "python"
	Node   Interpreter = "node"
)

// Job is one program to run.
type Job struct {
	// ID names the execution in logs, state directories and tool calls: lower-case letters, digits and '-'.
	ID          string
	Interpreter Interpreter
	Code        string
	// File is the program's path in the workspace, "" if it has none. Its folder comes first on the module search path.
	File string
	// Variables are predefined in the program by name, each with a JSON value.
	Variables map[string]json.RawMessage
	// Prelude is a module in Python; its public names are predefined in the program, before Variables; "" is none. Its function
	// _source, if any, gets the program's text and returns the text that runs; _answer gets the program's names after its end
	// and returns its value.
	Prelude string
	Limits  Limits
	// Environment is the name in Options.Environments that it runs in; "" means the host's own interpreters.
	Environment string
	// Added is set if Environment is another one with more packages: a worker makes it from this.
	Added *Added
	// Session, if set, names an interpreter that outlives the program: the next job with the same
	// Session, Interpreter and Environment sees this job's state in memory and in /workspace.
	// The name must contain the principal, so that principals never share a session.
	Session string
	// Owner names who runs the program, and whatever else separates programs that must not share a sandbox, such as
	// data-flow labels. Programs with the same Owner, Interpreter, Environment and Limits may run in the same sandbox one
	// after the other, each in processes of its own. "" gives the program a sandbox that no other program uses.
	Owner string
	// OwnerAfter returns the owner of the sandbox after the program, for example with the labels of what it has read;
	// nil is Owner. It is called once, when the program has ended.
	OwnerAfter func() string `json:"-"`
	// Workspace provides the initial content of /workspace and receives the changes;
	// nil is an empty one that is discarded.
	Workspace Workspace `json:"-"`
	// OnOutput receives output while the program runs, in chunks that may split a character: in order per stream,
	// with concurrent calls for the two streams. It must not block or retain p; nil disables it.
	OnOutput func(s Stream, p []byte) `json:"-"`

	slot *slot.Slot
}

// Added is an environment with more packages.
type Added struct {
	// Environment is the name of the one without them.
	Environment string `json:"environment"`
	// Packages are requirements, as in [sallyport/sandbox/deps.Request].
	Packages map[Interpreter][]string `json:"packages,omitempty"`
}

// Stream is a standard output stream of a program.
type Stream string

// The streams of a program.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Workspace keeps the files of /workspace from one program to the next; [workspace.Dir]
// implements it. Its methods must be safe for concurrent use.
type Workspace = bridge.Workspace

// File is one regular file or folder of a workspace.
type File = workspace.File

// Environment describes the read-only root file system of programs.
type Environment struct {
	// Root is the directory with the whole root file system, for example an unpacked
	// image; "" is the host's own /usr with a generated /etc.
	Root string
	// Python and Node are paths of interpreters: inside Root, or on the host if Root is "". "" searches for them.
	Python, Node string
	// Layers maps paths in the sandbox to host folders mounted there: installed packages.
	Layers map[string]string
	// PythonPath and NodePath are the package search paths inside the sandbox.
	PythonPath, NodePath []string
	// Masked are absolute paths that are hidden: folders and files appear empty.
	Masked []string
	// Digest changes whenever Root or Layers change; snapshots depend on it.
	Digest string
}

// Limits bound one sandbox. Every field must be positive; see [DefaultLimits].
type Limits struct {
	// Timeout is the wall-clock time of the program, without the time that its calls wait for a person ([tool.Pause]).
	Timeout time.Duration
	// Memory is bytes in use inside the sandbox, files in /workspace and /tmp included.
	Memory int64
	// Processes counts processes and threads.
	Processes int
	// OpenFiles is per process.
	OpenFiles int
	// CPU is processor time of all processes together.
	CPU time.Duration
	// FileSize is the size of the largest file that it may write, in bytes.
	FileSize int64
	// Workspace is the size of /workspace in bytes, Inodes how many files and folders fit into it.
	Workspace int64
	Inodes    int
	// Output is how many bytes of stdout and of stderr are kept, each; longer output is cut in the middle.
	Output int
	// Value is how many characters of the program's value are kept.
	Value int
	// Calls and Concurrency limit tool calls over the bridge.
	Calls, Concurrency int
	// Traffic is how many bytes may go over the bridge, both ways together.
	Traffic int64
}

// DefaultLimits are generous for a script and harmless for a laptop.
func DefaultLimits() Limits {
	return Limits{
		Timeout: 60 * time.Second, Memory: 512 << 20, Processes: 32, OpenFiles: 256,
		CPU: 60 * time.Second, FileSize: 256 << 20, Workspace: 256 << 20, Inodes: 50_000,
		Output: 16 << 10, Value: 16 << 10, Calls: 1000, Concurrency: 16, Traffic: 1 << 30,
	}
}

// A program is stopped when its output exceeds floodFactor times the output limit, and at least floodMin bytes.
const (
	floodFactor = 1024
	floodMin    = 16 << 20
)

// Flood returns the number of bytes of a stream beyond which the program is stopped.
func (l Limits) Flood() int64 { return max(floodMin, int64(l.Output)*floodFactor) }

// Status says how a program ended.
type Status string

// The possible statuses.
const (
	// OK: it ran to completion.
	OK Status = "ok"
	// Failed: it raised an exception, see Outcome.Fault.
	Failed Status = "failed"
	// Exited: it called exit, see Outcome.Exit.
	Exited Status = "exited"
	// TimedOut, OutOfMemory and Flooded: it was stopped at a limit.
	TimedOut    Status = "timeout"
	OutOfMemory Status = "memory"
	Flooded     Status = "output"
	// OutOfCPU: it exceeded its CPU time.
	OutOfCPU Status = "cpu"
	// Canceled: the caller canceled it.
	Canceled Status = "canceled"
	// Crashed: the sandbox died for an unknown reason.
	Crashed Status = "crashed"
)

// Outcome is the result of one program.
type Outcome struct {
	Status Status
	// Stdout and Stderr are what it printed.
	Stdout, Stderr Output
	// Value is its value, nil if it has none.
	Value *bridge.Value
	// Fault is its exception, for Failed.
	Fault *bridge.Fault
	// Exit is its status, for Exited and Crashed.
	Exit int
	// Emitted is what it sent to the client (text, images, audio, resources), in order.
	Emitted []tool.Content
	// Calls is how many tool calls it made.
	Calls int
	// Refused has the calls that its runtime refused to make, nil if there are none.
	Refused *bridge.Refused
	// Reused is true if it ran in an interpreter with the state of an earlier program of its session.
	Reused bool
	// Notes are for the model, such as which files of /workspace could not be kept.
	Notes []string
	// Lost names the machine that ran it, if it crashed because the connection to that broke: it may run again elsewhere.
	Lost string
	// Duration is from the start of the sandbox to the end of the program. CPU is the processor time that was measured.
	Duration, CPU time.Duration
}

// Output is one stream, cut in the middle where it was too long.
type Output struct {
	Text string
	// Cut is how many bytes are missing; Text says where.
	Cut int64
}
