package sandbox

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"time"
)

// Options configure a [Host].
type Options struct {
	// Runsc is the path of gVisor's runsc; "" looks in the folder of this binary and then in PATH.
	Runsc string
	// Python and Node are paths of interpreters; "" looks in /usr/bin, then in PATH.
	Python, Node string
	// Guest holds the files that are mounted at /opt/sallyport.
	Guest fs.FS
	// State is the directory for files that live only as long as the host; "" is a private directory of the user.
	State string
	// Parallel is how many sandboxes may run at once, further ones are queued; 0 is 4.
	Parallel int
	// Environments are available to jobs by name.
	Environments map[string]Environment
	// Masked are paths of the host's /usr to hide from all sandboxes, in addition to those that are always hidden.
	Masked []string
	// Snapshots is the directory where snapshots of started interpreters persist across restarts; "" disables that.
	Snapshots string
	// Pool configures the idle sandboxes that wait for programs.
	Pool Pool
	// Reuse lets programs of one owner share sandboxes, see Job.Owner. It requires a pool.
	Reuse bool
	// SessionIdle is how long the interpreter of a session may wait for its next program; 0 is 10 minutes.
	SessionIdle time.Duration
	// NoCgroups enforces limits by polling alone, even if cgroups can be created.
	NoCgroups bool
	// DebugLog is a directory for runsc's own logs; "" is none.
	DebugLog string
	// Logger receives starts, ends and errors of sandboxes; nil discards.
	Logger *slog.Logger
}

// Pool bounds the started, idle sandboxes that wait for the next program. Their number
// follows demand between Min and Max, for each interpreter of each environment in use.
type Pool struct {
	// Min is the number of idle sandboxes without demand.
	Min int
	// Max is the upper bound; 0 disables the pool: each program starts its own sandbox.
	Max int
	// Memory bounds the total memory of idle sandboxes, in bytes; 0 is 512 MiB.
	Memory int64
}

// ErrNoRunsc means that gVisor is not installed. Programs cannot run without it.
var ErrNoRunsc = errors.New("runsc (gVisor) was not found")

// ErrNoWorker means that no worker takes programs now. One may join, or come back.
var ErrNoWorker = errors.New("no worker takes programs")

// Check is the result of checking one prerequisite for running programs.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Warn means that it works, but not at its best.
	Warn bool `json:"warn,omitempty"`
	// Detail is what was found, Fix how to repair it.
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Service is an operator's program that processes model-written input, such as a
// type checker. It is isolated like the models' programs: no network, no environment
// variables, and only the host files that are named here, read-only.
// It has no bridge and communicates over its standard input and output.
type Service struct {
	// ID has the form of a Job's ID; it must be unique among the live sandboxes of a host.
	ID string
	// Environment is where it runs: the zero value is the host's /usr. Only its root file system,
	// interpreters and layers are used.
	Environment Environment
	// Interpreter runs Args; "" is none, and Args[0] the path of a binary without libraries.
	Interpreter Interpreter
	// Args are the arguments, with paths inside the sandbox.
	Args []string
	// Dir is where Files appear, by slash-separated path, and the working directory.
	Dir   string
	Files map[string][]byte
	// Mounts maps paths in the sandbox to host folders.
	Mounts map[string]string
	// Memory is in bytes. The service is stopped when it uses more.
	Memory int64
	// Processes counts processes and threads, OpenFiles is per process.
	Processes, OpenFiles int
	// Space is the size of /tmp in bytes, and of the largest file; 0 is 64 MiB.
	Space int64
	// Socket gives it a Unix socket, /run/sallyport/service.sock, that Server.Listener listens on.
	Socket bool
	// ThirdParty is set for a third-party program, such as an MCP server. It sees no wrappers and no files of the guest.
	ThirdParty *ThirdParty
}

// Network is the network of one sandbox.
type Network interface {
	// Wrap changes the command of the sandbox, so that it starts in a network namespace with the interfaces of the sandbox.
	Wrap(cmd *exec.Cmd) error
	// Start serves the network. It is called after the start of the command.
	Start() error
	// Close ends all connections.
	Close()
}

// HomeDir is the home folder of a third-party program.
const HomeDir = "/home/server"

// ThirdParty configures a third-party program. Service.Mounts may have files then, if the environment has no root of its own.
type ThirdParty struct {
	// Stdin, Stdout and Stderr are its standard streams: pipes, which Serve closes. The methods Read and Write of the server fail.
	Stdin, Stdout, Stderr *os.File
	// Env are environment variables, in addition to PATH, HOME, TMPDIR and LANG, which they can replace.
	Env map[string]string
	// Cwd is the working directory; "" is the home folder.
	Cwd string
	// Home is a folder of the host for /home/server; "" is a file system in memory.
	Home string
	// Writable maps paths in the sandbox to host folders that it may change.
	Writable map[string]string
	// Scratch are folders in the sandbox that it may change in memory.
	Scratch []string
	// User runs it as a user of its root; nil is nobody. Owner runs it as the owner of the files of this process's user.
	User  *User
	Owner bool
	// Network is the network; nil is none. NameServer is the address of its name server.
	Network    Network
	NameServer string
	// CPU is the processor time in each hour. The service is stopped when it uses more.
	CPU time.Duration
	// Plan chooses how to start it, by a digest of all that its state depends on. It may replace the streams. nil is the zero Plan.
	Plan func(digest string) Plan
}

// User is a user and its group.
type User struct{ UID, GID uint32 }

// Plan says how a third-party program starts. The zero Plan starts it from nothing.
type Plan struct {
	// Image is a checkpoint to continue from.
	Image string
	// Trace is a directory, with a trailing slash, for a log of the system calls of checkpoint.Syscalls.
	Trace string
}
