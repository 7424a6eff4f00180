// Package sandbox runs one program at a time in a gVisor sandbox of its own: no
// network, no file of the host but the interpreters', no environment, hard
// limits, and one way out, the bridge. Its main type is [Host], one machine that
// can start sandboxes; [Host.Run] is the whole life of one.
//
// Jobs and outcomes are plain values that can be sent elsewhere, and nothing in
// here knows the gateway: a worker on another machine can use the package alone.
package sandbox

import (
	"encoding/json"
	"time"

	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox/bridge"
)

// Interpreter is what runs a program.
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
	// File is where the program is in the workspace, "" if it is nowhere: its folder is where it finds modules first.
	File string
	// Variables are what the program finds under their names, each a JSON value.
	Variables map[string]json.RawMessage
	Limits    Limits
	// Environment names the one of Options.Environments that it runs in; "" is the host's own interpreters.
	Environment string
	// Session, if set, names an interpreter that outlives the program: the next job with the same
	// Session, Interpreter and Environment finds what this one left in memory and in /workspace.
	// The name keeps principals apart: it must contain the principal.
	Session string
	// Workspace is what /workspace holds at the start and who gets what the program
	// leaves there; nil is an empty one that is thrown away.
	Workspace Workspace `json:"-"`
	// Printed gets what the program prints, as it comes, in pieces that need not end where a character does: those of each
	// stream in order, but of both at once. It must not block, and not keep p; nil for none.
	Printed func(s Stream, p []byte) `json:"-"`

	place *place
}

// Stream is what a program prints to.
type Stream string

// The streams of a program.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Workspace keeps the files of /workspace from one program to the next; [workspace.Dir]
// does. Its methods may be called by several programs at once.
type Workspace = bridge.Workspace

// File is one regular file or folder of a workspace.
type File = workspace.File

// Environment is what programs find on their root file system, read-only.
type Environment struct {
	// Root is a directory that is all of the root file system, unpacked from an image
	// or made otherwise; "" is the host's own /usr with a generated /etc.
	Root string
	// Python and Node are paths of interpreters: inside of Root, or on the host where Root is "". "" looks them up.
	Python, Node string
	// Layers are folders of the host by where they appear: installed packages.
	Layers map[string]string
	// PythonPath and NodePath are where programs find packages, inside.
	PythonPath, NodePath []string
	// Masked are absolute paths that are hidden: folders look empty, files too.
	Masked []string
	// Digest changes when anything in Root or Layers does, for snapshots.
	Digest string
}

// Limits bound one sandbox. Every field must be positive; see [DefaultLimits].
type Limits struct {
	// Timeout is wall-clock time from the program's start to its end, without what its calls wait for a person ([tool.Pause]).
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
	// Output is how many bytes of stdout and of stderr are kept, each; more is cut in the middle.
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

// floodFactor times the output limit, and at least floodMin bytes, is where a program that prints on is stopped.
const (
	floodFactor = 1024
	floodMin    = 16 << 20
)

// Status says how a program ended.
type Status string

// The ways to end.
const (
	// OK: it ran to its end.
	OK Status = "ok"
	// Failed: it raised an exception, see Outcome.Fault.
	Failed Status = "failed"
	// Exited: it ended itself, see Outcome.Exit.
	Exited Status = "exited"
	// TimedOut, OutOfMemory and Flooded: it was stopped at a limit.
	TimedOut    Status = "timeout"
	OutOfMemory Status = "memory"
	Flooded     Status = "output"
	// OutOfCPU: it used up its processor time.
	OutOfCPU Status = "cpu"
	// Canceled: the caller went away.
	Canceled Status = "canceled"
	// Crashed: the sandbox died without a reason that we know.
	Crashed Status = "crashed"
)

// Outcome is how one program ended and what it left.
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
	// Reused says that it ran where an earlier program of its session had left its state.
	Reused bool
	// Notes are for the model: what of /workspace could not be kept, and the like.
	Notes []string
	// Duration is from the start of the sandbox to the end of the program.
	Duration time.Duration
}

// Output is one stream, cut in the middle where it was too long.
type Output struct {
	Text string
	// Cut is how many bytes are missing; Text says where.
	Cut int64
}
