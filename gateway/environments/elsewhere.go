package environments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/remote"
)

// onWorkers reports whether workers make the environments: the settings have only names and descriptions then.
func onWorkers(e *Environments) bool {
	return e.opts.Settings.Load().Sandbox.Remote == config.RemoteWorkers
}

// errNoWorker is the error for an environment in which no worker runs programs.
var errNoWorker = errors.New("no worker runs programs in it: start one with `sallyport worker --environments FILE` (docs/how-to/workers.md)")

// checkElsewhere runs a program in an environment on a worker, and describes its interpreters.
func checkElsewhere(ctx context.Context, e *Environments, made *building) (string, error) {
	for _, i := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		if e.version(ctx, i, made.key, e.limits()) != "" {
			return e.contents(ctx, made), nil
		}
	}
	return "", errNoWorker
}

// workerRetry is the time until a worker is asked again for packages that could not be added.
const workerRetry = 2 * time.Second

// retryTime returns the time until a failed build is retried.
func retryTime(e *Environments) time.Duration {
	if onWorkers(e) {
		return workerRetry
	}
	return environmentRetry
}

// buildElsewhere has a worker add the packages of a recipe. Other workers add them when a program needs them there.
func buildElsewhere(ctx context.Context, e *Environments, r recipe, m *building) (err error) {
	m.key = r.name
	if r == (recipe{name: r.name}) {
		return nil
	}
	m.key, m.added = r.key(), &sandbox.Added{Environment: r.name, Packages: r.packages()}
	m.packages, err = askWorkers(ctx, e, m.key, m.added)
	return err
}

// addLimit bounds the wait for a worker that adds packages.
const addLimit = 10 * time.Minute

// askWorkers has a worker list the packages of an environment with added packages. Errors are *remote.AddError.
func askWorkers(ctx context.Context, e *Environments, key string, added *sandbox.Added) (map[sandbox.Interpreter][]deps.InstalledPackage, error) {
	ctx, cancel := context.WithTimeout(ctx, addLimit)
	defer cancel()
	found, err := e.opts.Packages(ctx, sandbox.Job{Environment: key, Added: added})
	if _, explained := errors.AsType[*remote.AddError](err); err != nil && !explained {
		err = &remote.AddError{Text: sanitize.Line(err.Error(), 300)}
	}
	return found, err
}

// key returns a name for the environment of a recipe with added packages.
func (r recipe) key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", r.extraPython, r.extraNode))
	return r.name + "-" + hex.EncodeToString(sum[:6])
}

// packages returns the added packages of a recipe.
func (r recipe) packages() map[sandbox.Interpreter][]string {
	all := map[sandbox.Interpreter][]string{sandbox.Python: split(r.extraPython), sandbox.Node: split(r.extraNode)}
	maps.DeleteFunc(all, func(_ sandbox.Interpreter, names []string) bool { return len(names) == 0 })
	return all
}

// baseKey returns the key of the environment whose interpreters an environment has.
func baseKey(made *building) string {
	if made.added != nil {
		return made.added.Environment
	}
	return made.key
}

// listingAge is how long the list of the packages of an environment on workers is used: a worker may be restarted with others.
const listingAge = time.Minute

// listings are the packages of environments on workers, without those that were added.
type listings struct {
	mu     sync.Mutex
	byName map[string]listing
}

type listing struct {
	packages map[sandbox.Interpreter][]deps.InstalledPackage
	at       time.Time
}

// listElsewhere returns the packages of an environment on a worker.
func listElsewhere(ctx context.Context, e *Environments, interpreter sandbox.Interpreter, name string) ([]deps.InstalledPackage, error) {
	e.listed.mu.Lock()
	known := e.listed.byName[name]
	e.listed.mu.Unlock()
	if time.Since(known.at) < listingAge {
		return known.packages[interpreter], nil
	}
	found, err := askWorkers(ctx, e, name, &sandbox.Added{Environment: name})
	if err != nil {
		return nil, buildError(name, err)
	}
	e.listed.mu.Lock()
	defer e.listed.mu.Unlock()
	if e.listed.byName == nil {
		e.listed.byName = map[string]listing{}
	}
	e.listed.byName[name] = listing{found, time.Now()}
	return found[interpreter], nil
}
