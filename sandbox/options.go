package sandbox

import (
	"errors"
	"io/fs"
	"log/slog"
	"time"
)

// Options are what a machine needs to run sandboxes.
type Options struct {
	// Runsc is the path of gVisor's runsc; "" looks in the folder of this binary and then in PATH.
	Runsc string
	// Python and Node are paths of interpreters; "" looks in /usr/bin, then in PATH.
	Python, Node string
	// Guest holds the files that are mounted at /opt/sallyport.
	Guest fs.FS
	// State is the directory for what lives only as long as the host; "" is a private one of the user's.
	State string
	// Parallel is how many sandboxes may run at once, more wait; 0 is 4.
	Parallel int
	// Environments are what jobs can ask for by name.
	Environments map[string]Environment
	// Masked are paths of the host's /usr that no sandbox sees, in addition to those that never are.
	Masked []string
	// Snapshots is the directory where snapshots of started interpreters are kept over restarts; "" keeps none.
	Snapshots string
	// Pool says how many sandboxes wait for programs.
	Pool Pool
	// SessionIdle is how long the interpreter of a session may wait for its next program; 0 is 10 minutes.
	SessionIdle time.Duration
	// NoCgroups holds sandboxes to their limits by watching alone, also where cgroups can be made.
	NoCgroups bool
	// DebugLog is a directory for runsc's own logs; "" is none.
	DebugLog string
	// Logger gets start, end and trouble of sandboxes; nil discards.
	Logger *slog.Logger
}

// Pool bounds the sandboxes that wait, started and idle, for the next program. The
// number follows demand between Min and Max, of each interpreter of each environment in use.
type Pool struct {
	// Min waits when nothing continues; 0 is none.
	Min int
	// Max waits at most; 0 is no pool: each program starts a sandbox of its own.
	Max int
	// Memory bounds what all that wait use together, in bytes; 0 is 512 MiB.
	Memory int64
}

// ErrNoRunsc says that gVisor is not there. There is no other way to run a program.
var ErrNoRunsc = errors.New("runsc (gVisor) was not found: run `make runsc`, or set sandbox.runsc in upstreams.yaml")

// Check is one thing that running programs depends on.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Warn says that it works, but worse than it could.
	Warn bool `json:"warn,omitempty"`
	// Detail is what was found, Fix how to mend it.
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// Service is a program of the operator's that reads what models wrote, such as
// a type checker, and is held like their programs for that: no network, no
// environment, nothing of the host but what is named here, all of it read-only.
// It has no bridge, and is spoken to over its standard input and output.
type Service struct {
	// ID is as a Job's; no two sandboxes of a host may have the same at once.
	ID string
	// Environment is where it runs: the zero value is the host's /usr. Only its root file system,
	// interpreters and layers count.
	Environment Environment
	// Interpreter runs Args; "" is none, and Args[0] the path of a binary without libraries.
	Interpreter Interpreter
	// Args are as inside of the sandbox.
	Args []string
	// Dir is where Files appear, by slash-separated path, and the working directory.
	Dir   string
	Files map[string][]byte
	// Mounts are folders of the host by where they appear.
	Mounts map[string]string
	// Memory is in bytes. The service is stopped when it uses more.
	Memory int64
	// Processes counts processes and threads, OpenFiles is per process.
	Processes, OpenFiles int
	// Space is the size of /tmp in bytes, and of the largest file; 0 is 64 MiB.
	Space int64
	// Socket gives it a Unix socket, /run/sallyport/service.sock, that Server.Listener listens on.
	Socket bool
}
