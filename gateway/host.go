package gateway

import (
	"context"
	"fmt"
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

// host is where programs run: a [sandbox.Host] on this machine, or a [remote.Client] of another one's.
type host interface {
	Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error)
	Publish(files map[string][]byte) error
	Warm(jobs ...sandbox.Job)
	Waiting(i sandbox.Interpreter) (n int, full bool)
	Close() error
}

// openHost opens the sandboxes as the settings are now.
func (g *Gateway) openHost() (host, error) {
	box := g.cfg.Load().Sandbox
	if box.Remote != "" {
		return g.openRemote(box)
	}
	opts := sandbox.Options{
		Runsc: box.Runsc, Python: box.Python, Node: box.Node, Guest: runtime.Guest(),
		Parallel: slots(box), Masked: box.Masked, SessionIdle: box.SessionIdle, DebugLog: g.opts.DebugLog, Logger: g.log,
	}
	if !g.opts.NoPool {
		opts.Pool = pool(box)
	}
	if g.opts.CacheDir != "" {
		opts.Snapshots = filepath.Join(g.opts.CacheDir, snapshotFolder)
	}
	opened, err := sandbox.New(opts)
	if err != nil { // no host is not a nil one
		return nil, err
	}
	return opened, nil
}

// slots is how many there may be at once: those of the programs that run, which [admission] bounds, and of those that wait
// for programs that they have started.
func slots(box config.Sandbox) int { return box.Parallel * (1 + maxDelegated) }

// openRemote is for sandboxes on another machine. It connects when a program needs it.
func (g *Gateway) openRemote(box config.Sandbox) (host, error) {
	address, err := sshurl.Parse(box.Remote)
	if err != nil {
		return nil, fmt.Errorf("sandbox.remote %w", err)
	}
	opts := remote.Options{
		Version: g.opts.Version, Guest: runtime.Guest(), Name: address.String(), Parallel: slots(box), SessionIdle: box.SessionIdle, Masked: box.Masked, Logger: g.log,
	}
	if !g.opts.NoPool {
		opts.Pool = pool(box)
	}
	return remote.New(remote.SSH(address), &opts)
}

func pool(box config.Sandbox) sandbox.Pool {
	return sandbox.Pool{Min: box.Pool.Min, Max: box.Pool.Max, Memory: int64(box.Pool.Memory)}
}

// limits are those of the settings as they are now.
func (g *Gateway) limits(program execution.Program) sandbox.Limits {
	return program.Limits(g.cfg.Load().Sandbox)
}
