package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"sallyport/codegen/runtime"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/machine"
	"sallyport/internal/natsconn"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/workers"
)

// Host runs programs: a [sandbox.Host] on this machine, a [remote.Client] for another machine, or a [workers.Pool].
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
	// Snapshots is the directory for snapshots of started interpreters; "" keeps none.
	Snapshots string
	// DebugLog is a directory for runsc's own logs; "" is none.
	DebugLog string
	// NoPool keeps no sandbox ready for programs.
	NoPool bool
	// Open opens the host; nil opens the one of the settings.
	Open func() (Host, error)
}

// open opens the host of the current settings. local is nil if it is on another machine.
func (o SandboxOptions) open() (opened Host, local *sandbox.Host, err error) {
	box := o.Settings.Load().Sandbox
	switch {
	case o.Open != nil:
		opened, err = o.Open()
		return opened, nil, err
	case box.Remote == config.RemoteWorkers:
		opened, err = o.openWorkers(box)
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
		Parallel: maxSandboxes(box), Masked: box.Masked, SessionIdle: box.SessionIdle, Reuse: box.Reuse == config.ReusePrincipal, Snapshots: o.Snapshots, DebugLog: o.DebugLog, Logger: o.Logger,
	}
	if !o.NoPool {
		opts.Pool = poolOptions(box)
	}
	return sandbox.New(opts)
}

// maxSandboxes returns the maximum number of sandboxes: those of running programs, which [admission] bounds, and of programs that
// wait for programs that they have started.
func maxSandboxes(box config.Sandbox) int { return box.Parallel * (1 + maxDelegated) }

// openRemote returns a host on another machine. It connects when a program needs it.
func (o SandboxOptions) openRemote(box config.Sandbox) (Host, error) {
	address, err := machine.Parse(box.Remote)
	if err != nil {
		return nil, fmt.Errorf("sandbox.remote %w", err)
	}
	opts := o.remoteOptions(box)
	opts.Name = address.String()
	return remote.New(remote.To(address), &opts)
}

// openWorkers returns a host on all workers that join.
func (o SandboxOptions) openWorkers(box config.Sandbox) (Host, error) {
	set := o.Settings.Load().Store
	if set.Problem != "" {
		return nil, errors.New("the servers of the workers are not known: " + set.Problem)
	}
	return workers.Open(workers.Options{
		Server: natsconn.Of(set, "sallyport "+o.Version), Prefix: set.Prefix, Remote: o.remoteOptions(box), Logger: o.Logger,
		Placement: func() []string { return o.Settings.Load().Sandbox.Placement },
	})
}

func (o SandboxOptions) remoteOptions(box config.Sandbox) remote.Options {
	opts := remote.Options{
		Version: o.Version, Guest: runtime.Guest(), Parallel: maxSandboxes(box), SessionIdle: box.SessionIdle, Masked: box.Masked,
		Reuse: box.Reuse == config.ReusePrincipal, Logger: o.Logger,
	}
	if !o.NoPool {
		opts.Pool = poolOptions(box)
	}
	return opts
}

func poolOptions(box config.Sandbox) sandbox.Pool {
	return sandbox.Pool{Min: box.Pool.Min, Max: box.Pool.Max, Memory: int64(box.Pool.Memory)}
}

// Limits returns the limits of a program by the settings in force.
func (ex *Executor) Limits(program execution.Program) sandbox.Limits {
	return program.Limits(ex.opts.Settings.Load().Sandbox)
}
