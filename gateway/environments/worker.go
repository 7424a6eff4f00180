package environments

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/remote"
)

// The bounds of environments with packages that gateways add, on a worker.
const (
	// maxBuilds is how many are built at once, maxPending how many are built or wait for it.
	maxBuilds, maxPending = 2, 32
	// maxKept is how many are remembered. The least recently used ones are composed again from their layers.
	maxKept = 256
)

// Made are the environments of the settings on a worker, for hosts that get them as options. Close them.
type Made struct {
	// All are those of the settings, by name.
	All map[string]sandbox.Environment
	of  *Environments
}

// MakeAll makes the environments of the settings on this machine.
func MakeAll(ctx context.Context, host *sandbox.Host, opts Options) (*Made, error) {
	opts.Sandboxes = localHost{host}
	made := &Made{All: map[string]sandbox.Environment{}, of: New(opts)}
	made.of.turns = make(chan struct{}, maxBuilds)
	for _, name := range slices.Sorted(maps.Keys(opts.Settings.Load().Environments)) {
		if err := made.make(ctx, host, name); err != nil {
			made.Close()
			return nil, fmt.Errorf("make environment %s: %w", name, err)
		}
	}
	return made, nil
}

func (m *Made) make(ctx context.Context, host *sandbox.Host, name string) error {
	if _, _, _, err := m.of.Find(name); err != nil {
		return err
	}
	one := m.of.startBuild(recipe{name: name})
	select {
	case <-one.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if one.err != nil {
		return one.err
	}
	m.All[name] = one.env
	_, err := host.Define(name, one.env) // it refuses one without interpreters
	return err
}

// Close ends builds. What was made may then be removed.
func (m *Made) Close() { m.of.Close() }

// Extend returns an environment with the packages that a gateway adds to it, where the settings of this machine allow it. What the gateway
// asks for is untrusted. The build goes on after ctx has ended. Most errors are *remote.AddError.
func (m *Made) Extend(ctx context.Context, added sandbox.Added) (remote.Extended, error) {
	r, err := m.check(added)
	if err != nil {
		return remote.Extended{}, err
	}
	one, err := m.start(r)
	if err != nil {
		return remote.Extended{}, err
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return remote.Extended{}, &remote.AddError{Text: "environment " + r.name + " is being installed (try again in a moment)", Final: true}
	}
	if one.err != nil && isPackageError(one.err) {
		return remote.Extended{}, &remote.AddError{Text: sanitize.Line(one.err.Error(), 500), Final: true}
	}
	return remote.Extended{Environment: one.env, Folders: one.sites}, one.err
}

// check returns the recipe of an environment that a gateway asks for, or an error if it may not.
func (m *Made) check(added sandbox.Added) (recipe, error) {
	settings, known := m.of.opts.Settings.Load().Environments[added.Environment]
	if !known {
		return recipe{}, &remote.AddError{Text: fmt.Sprintf("there is no environment %.80q", added.Environment)}
	}
	r := recipe{name: added.Environment}
	for interpreter, names := range added.Packages {
		switch {
		case !settings.Install:
			return recipe{}, &remote.AddError{Text: "packages cannot be installed in environment " + r.name + ": the settings of that machine do not have `install: true`"}
		case interpreter != sandbox.Python && interpreter != sandbox.Node:
			return recipe{}, &remote.AddError{Text: fmt.Sprintf("there is no interpreter %.20q", interpreter), Final: true}
		case len(names) > maxExtras:
			return recipe{}, &remote.AddError{Text: fmt.Sprintf("at most %d packages can be installed", maxExtras), Final: true}
		}
		if err := deps.Check(interpreter, names); err != nil {
			return recipe{}, &remote.AddError{Text: sanitize.Line(err.Error(), 300), Final: true}
		}
		r = r.with(interpreter, slices.Sorted(slices.Values(names)))
	}
	return r, nil
}

// start starts the build of a recipe, unless it is built or in progress, and forgets those that were not used for long.
func (m *Made) start(r recipe) (*building, error) {
	e := m.of
	e.mu.Lock()
	pending, finished := countBuilds(e)
	if known := e.builds[r]; known != nil {
		known.used = time.Now()
	} else if pending >= maxPending {
		e.mu.Unlock()
		return nil, &remote.AddError{Text: "too many packages are being installed (try again in a moment)"}
	}
	slices.SortFunc(finished, func(a, b recipe) int { return e.builds[a].used.Compare(e.builds[b].used) })
	forget(e, finished[:max(0, len(finished)-maxKept)], pending == 0)
	e.mu.Unlock()
	return e.startBuild(r), nil
}

// countBuilds returns the number of builds in progress, and those with added packages that have ended. It is called with mu held.
func countBuilds(e *Environments) (pending int, finished []recipe) {
	for r, one := range e.builds {
		select {
		case <-one.done:
			if r != (recipe{name: r.name}) {
				finished = append(finished, r)
			}
		default:
			pending++
		}
	}
	return pending, finished
}

// forget forgets builds. With drop, it ends the use of layers that no other build has; builds in progress may have them. It is called with mu held.
func forget(e *Environments, old []recipe, drop bool) {
	var gone []string
	for _, r := range old {
		gone = append(gone, layersOf(e.builds[r])...)
		delete(e.builds, r)
	}
	if len(gone) == 0 || !drop {
		return
	}
	used := map[string]bool{}
	for _, one := range e.builds {
		for _, layer := range layersOf(one) {
			used[layer] = true
		}
	}
	e.lease.drop(slices.DeleteFunc(gone, func(layer string) bool { return used[layer] })...)
}

// layersOf returns the layers of an environment that is built, as a lease has them.
func layersOf(m *building) (all []string) {
	if !m.ready() {
		return nil
	}
	for _, dir := range m.env.Layers {
		if digest := filepath.Base(filepath.Dir(dir)); layerForm.MatchString(digest) {
			all = append(all, layerKey(digest))
		}
	}
	return all
}

// layerForm matches the digest of a layer.
var layerForm = regexp.MustCompile(`^[0-9a-f]{32,64}$`)

// beginTurn waits until a build may run, if they are bounded.
func beginTurn(ctx context.Context, turns chan struct{}) (end func(), err error) {
	if turns == nil {
		return func() {}, nil
	}
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// localHost runs the programs of an installation.
type localHost struct{ host *sandbox.Host }

// Run implements [Sandboxes].
func (l localHost) Run(ctx context.Context, job sandbox.Job, _ bridge.Caller) (sandbox.Outcome, error) {
	return l.host.Run(ctx, job, toolcall.NoTools{})
}

// Local implements [Sandboxes].
func (l localHost) Local() (*sandbox.Host, func(), error) { return l.host, func() {}, nil }
