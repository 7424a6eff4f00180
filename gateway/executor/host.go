package executor

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"sallyport/codegen/runtime"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/sshurl"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/remote"
)

// snapshotFolder is where in the cache's folder snapshots of started interpreters are kept.
const snapshotFolder = "snapshots"

// Host is where programs run: a [sandbox.Host] on this machine, or a [remote.Client] of another one's.
type Host interface {
	Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error)
	Publish(files map[string][]byte) error
	Warm(jobs ...sandbox.Job)
	Waiting(i sandbox.Interpreter) (n int, full bool)
	Close() error
}

// SandboxOptions configure sandboxes. Settings and Logger are required.
type SandboxOptions struct {
	Settings config.Source
	Logger   *slog.Logger
	// Version is the gateway's, as workers on other machines see it.
	Version string
	// CacheDir keeps snapshots of started interpreters; "" keeps none.
	CacheDir string
	// DebugLog is a directory for runsc's own logs; "" is none.
	DebugLog string
	// NoPool keeps no sandbox ready for programs.
	NoPool bool
	// Open opens where programs run; nil opens what the settings say.
	Open func() (Host, error)
}

// open opens the sandboxes as the settings are now. local is nil for those of another machine.
func (o SandboxOptions) open() (opened Host, local *sandbox.Host, err error) {
	box := o.Settings.Load().Sandbox
	switch {
	case o.Open != nil:
		opened, err = o.Open()
		return opened, nil, err
	case box.Remote != "":
		opened, err = o.openRemote(box)
		return opened, nil, err
	}
	local, err = o.openLocal(box)
	return local, local, err
}

// openLocal opens sandboxes on this machine.
func (o SandboxOptions) openLocal(box config.Sandbox) (*sandbox.Host, error) {
	opts := sandbox.Options{
		Runsc: box.Runsc, Python: box.Python, Node: box.Node, Guest: runtime.Guest(),
		Parallel: slots(box), Masked: box.Masked, SessionIdle: box.SessionIdle, DebugLog: o.DebugLog, Logger: o.Logger,
	}
	if !o.NoPool {
		opts.Pool = pool(box)
	}
	if o.CacheDir != "" {
		opts.Snapshots = filepath.Join(o.CacheDir, snapshotFolder)
	}
	return sandbox.New(opts)
}

// slots is how many there may be at once: those of the programs that run, which [admission] bounds, and of those that wait
// for programs that they have started.
func slots(box config.Sandbox) int { return box.Parallel * (1 + maxDelegated) }

// openRemote is for sandboxes on another machine. It connects when a program needs it.
func (o SandboxOptions) openRemote(box config.Sandbox) (Host, error) {
	address, err := sshurl.Parse(box.Remote)
	if err != nil {
		return nil, fmt.Errorf("sandbox.remote %w", err)
	}
	opts := remote.Options{
		Version: o.Version, Guest: runtime.Guest(), Name: address.String(), Parallel: slots(box), SessionIdle: box.SessionIdle, Masked: box.Masked, Logger: o.Logger,
	}
	if !o.NoPool {
		opts.Pool = pool(box)
	}
	return remote.New(remote.SSH(address), &opts)
}

func pool(box config.Sandbox) sandbox.Pool {
	return sandbox.Pool{Min: box.Pool.Min, Max: box.Pool.Max, Memory: int64(box.Pool.Memory)}
}

// Limits returns the limits of a program by the settings in force.
func (ex *Executor) Limits(program execution.Program) sandbox.Limits {
	return program.Limits(ex.opts.Settings.Load().Sandbox)
}
