// Package sandbox runs one program at a time in a gVisor sandbox of its own: no
// network, no file of the host but the interpreters', no environment, hard
// limits, and one way out, the bridge. Its main type is [Host], one machine that
// can start sandboxes; [Host.Run] is the whole life of one.
//
// Jobs and outcomes are plain values that can be sent elsewhere, and nothing in
// here knows the gateway: a worker on another machine can use the package alone.
package sandbox

import (
	"time"

	"sallyport/internal/tool"
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
	Limits      Limits
}

// Limits bound one sandbox. Every field must be positive; see [DefaultLimits].
type Limits struct {
	// Timeout is wall-clock time from the program's start to its end.
	Timeout time.Duration
	// Memory is bytes in use inside the sandbox, files in /workspace and /tmp included.
	Memory int64
	// Processes counts processes and threads.
	Processes int
	// OpenFiles is per process.
	OpenFiles int
	// Workspace is the size of /workspace in bytes.
	Workspace int64
	// Output is how many bytes of stdout and of stderr are kept, each; more is cut in the middle.
	Output int
	// Value is how many characters of the program's value are kept.
	Value int
	// Calls and Concurrency limit tool calls over the bridge.
	Calls, Concurrency int
}

// DefaultLimits are generous for a script and harmless for a laptop.
func DefaultLimits() Limits {
	return Limits{
		Timeout: 60 * time.Second, Memory: 512 << 20, Processes: 64, OpenFiles: 256,
		Workspace: 256 << 20, Output: 16 << 10, Value: 16 << 10, Calls: 1000, Concurrency: 16,
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
	// Canceled: whoever asked for it went away.
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
	// Duration is from the start of the sandbox to the end of the program.
	Duration time.Duration
}

// Output is one stream, cut in the middle where it was too long.
type Output struct {
	Text string
	// Cut is how many bytes are missing; Text says where.
	Cut int64
}
