package environments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// onWorkers reports whether workers make the environments: the settings have only names and descriptions then.
func onWorkers(e *Environments) bool {
	return e.opts.Settings.Load().Sandbox.Remote == config.RemoteWorkers
}

// errNoWorker is the error for an environment in which no worker runs programs.
var errNoWorker = errors.New("no worker runs programs in it: start one with `sallyport worker --environments FILE` (docs/how-to/workers.md)")

// errPackagesElsewhere is the error for the list of packages of an environment on workers.
func errPackagesElsewhere(name string) error {
	return &tool.Error{Kind: tool.Invalid, Message: "the packages of environment " + name + " are not listed: it is on other machines", Hint: "import what you need; a program says what is missing"}
}

// checkElsewhere runs a program in an environment on a worker, and describes its interpreters.
func checkElsewhere(ctx context.Context, e *Environments, made *building) (string, error) {
	for _, i := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		if e.version(ctx, i, made.key, e.limits()) != "" {
			return e.contents(ctx, made), nil
		}
	}
	return "", errNoWorker
}

// MakeAll makes the environments of the settings on this machine, for a host that gets them as options. They are kept until closed is called.
func MakeAll(ctx context.Context, host *sandbox.Host, opts Options) (all map[string]sandbox.Environment, closed func(), err error) {
	opts.Sandboxes = localHost{host}
	e := New(opts)
	all = map[string]sandbox.Environment{}
	for _, name := range slices.Sorted(maps.Keys(opts.Settings.Load().Environments)) {
		if _, _, _, err = e.Find(name); err == nil {
			all[name], _, err = compose(ctx, e, host, recipe{name: name})
		}
		if err == nil {
			_, err = host.Define(name, all[name]) // it refuses one without interpreters
		}
		if err != nil {
			e.Close()
			return nil, nil, fmt.Errorf("make environment %s: %w", name, err)
		}
		opts.Logger.InfoContext(ctx, "environment is ready", "environment", name)
	}
	return all, e.Close, nil
}

// localHost runs the programs of an installation.
type localHost struct{ host *sandbox.Host }

// Run implements [Sandboxes].
func (l localHost) Run(ctx context.Context, job sandbox.Job, _ bridge.Caller) (sandbox.Outcome, error) {
	return l.host.Run(ctx, job, toolcall.NoTools{})
}

// Local implements [Sandboxes].
func (l localHost) Local() (*sandbox.Host, func(), error) { return l.host, func() {}, nil }
