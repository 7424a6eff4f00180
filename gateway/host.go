package gateway

import (
	"path/filepath"

	"sallyport/codegen/runtime"
	"sallyport/sandbox"
)

// snapshotFolder is where in the cache's folder snapshots of started interpreters are kept.
const snapshotFolder = "snapshots"

// openHost opens the sandboxes as the settings are now.
func (g *Gateway) openHost() (*sandbox.Host, error) {
	box := g.cfg.Load().Sandbox
	opts := sandbox.Options{
		Runsc: box.Runsc, Python: box.Python, Node: box.Node, Guest: runtime.Guest(),
		Masked: box.Masked, SessionIdle: box.SessionIdle, DebugLog: g.opts.DebugLog, Logger: g.log,
	}
	if !g.opts.NoPool {
		opts.Pool = sandbox.Pool{Min: box.Pool.Min, Max: box.Pool.Max, Memory: int64(box.Pool.Memory)}
	}
	if g.opts.CacheDir != "" {
		opts.Snapshots = filepath.Join(g.opts.CacheDir, snapshotFolder)
	}
	return sandbox.New(opts)
}

// limits are those of the settings as they are now.
func (g *Gateway) limits(program Program) sandbox.Limits {
	box := g.cfg.Load().Sandbox
	limits := sandbox.Limits{
		Timeout: box.Timeout, Memory: int64(box.Memory), Processes: box.Processes, OpenFiles: box.OpenFiles,
		CPU: box.CPU, FileSize: int64(box.FileSize), Workspace: int64(box.Workspace), Inodes: box.Inodes,
		Output: int(box.Output), Value: int(box.Output), Calls: box.Calls, Concurrency: box.Concurrency, Traffic: int64(box.Traffic),
	}
	if program.Timeout > 0 {
		limits.Timeout = min(limits.Timeout, program.Timeout)
	}
	return limits
}
