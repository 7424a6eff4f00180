package environments

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// Packages are the packages of an environment that a request names.
type Packages struct {
	// Names are requirements to install, or names of packages or modules to list; empty lists all.
	Names []string
	// Language is as in Program.
	Language string
	// Environment names one of the settings; "" is the default one.
	Environment string
}

// maxExtras is how many packages a principal's model may add to an environment.
const maxExtras = 50

// InstallPackages adds packages to an environment for the caller (tool.Principal) only,
// from the next program until the gateway ends, or at all gateways of a store. It returns text for the model. Errors are *tool.Error.
func (e *Environments) InstallPackages(ctx context.Context, p Packages) (string, error) {
	interpreter, name, err := e.packagesOf(ctx, p)
	if err != nil {
		return "", err
	}
	settings, _ := e.settings(name)
	if !settings.Install {
		return "", e.noInstall(name)
	}
	if len(p.Names) == 0 {
		return "", &tool.Error{Kind: tool.Invalid, Message: "packages is empty", Hint: `name some, as in ["pandas==2.2.3"]`}
	}
	if err := e.opts.MayInstall(ctx); err != nil {
		return "", err
	}
	if err := deps.Check(interpreter, p.Names); err != nil {
		return "", &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(err.Error(), 300), Err: err}
	}
	made, err := e.add(ctx, extraKey{tool.Principal(ctx), name, interpreter}, p.Names)
	if err != nil {
		return "", err
	}
	if err := save(ctx, e, tool.Principal(ctx), settings.Keep); err != nil {
		return "", &tool.Error{Kind: tool.Internal, Message: "the packages are installed, but not kept", Hint: "they are gone when the gateway ends", Err: err}
	}
	all, err := packagesIn(made, interpreter)
	if err != nil {
		return "", &tool.Error{Kind: tool.Internal, Message: "the packages are installed, but cannot be listed", Err: err}
	}
	return "installed: " + packageLines(interpreter, all, p.Names, ", ") + ". The next program can import them; sessions restart.", nil
}

// InstalledPackages returns text about what is installed in an environment in addition to the standard library.
func (e *Environments) InstalledPackages(ctx context.Context, p Packages) (string, error) {
	interpreter, name, err := e.packagesOf(ctx, p)
	if err != nil {
		return "", err
	}
	all, err := e.installed(ctx, interpreter, name)
	if err != nil {
		return "", err
	}
	switch {
	case len(p.Names) > 0:
		return packageLines(interpreter, all, p.Names, "\n"), nil
	case len(all) == 0:
		return "only the language's own library", nil
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.Name
	}
	return packageLines(interpreter, all, names, "\n"), nil
}

// installed returns the packages of an environment, for the caller.
func (e *Environments) installed(ctx context.Context, interpreter sandbox.Interpreter, name string) ([]deps.InstalledPackage, error) {
	if _, known := e.settings(name); !known {
		return nil, nil
	}
	made := e.startBuild(e.recipe(tool.Principal(ctx), name))
	if err := made.wait(ctx, name); err != nil {
		return nil, err
	}
	if onWorkers(e) && made.added == nil {
		return listElsewhere(ctx, e, interpreter, name)
	}
	all, err := packagesIn(made, interpreter)
	if err != nil {
		return nil, &tool.Error{Kind: tool.Internal, Message: "packages cannot be listed", Err: err}
	}
	return all, nil
}

// FindPackages returns the versions of the installed ones of some packages or modules, by the name that was asked for.
func (e *Environments) FindPackages(ctx context.Context, p Packages) (versions map[string]string, err error) {
	interpreter, name, err := e.packagesOf(ctx, p)
	if err != nil {
		return nil, err
	}
	all, err := e.installed(ctx, interpreter, name)
	if err != nil {
		return nil, err
	}
	versions = map[string]string{}
	for _, asked := range p.Names {
		if one, ok := deps.Find(interpreter, all, asked); ok {
			versions[asked] = one.Version
		}
	}
	return versions, nil
}

// packagesIn returns the packages of an environment that is built. One on a worker has added packages.
func packagesIn(made *building, interpreter sandbox.Interpreter) ([]deps.InstalledPackage, error) {
	if made.added != nil {
		return made.packages[interpreter], nil
	}
	return deps.List(interpreter, made.sites[interpreter]...)
}

func (e *Environments) packagesOf(ctx context.Context, p Packages) (sandbox.Interpreter, string, error) {
	interpreter, err := execution.Interpreter(p.Language)
	if err != nil {
		return "", "", err
	}
	name, _, _, err := e.Find(e.ResolveName(ctx, p.Environment))
	return interpreter, name, err
}

func (e *Environments) noInstall(name string) error {
	err := &tool.Error{Kind: tool.Denied, Message: "packages cannot be installed in environment " + name, Hint: "the operator decides that"}
	var others []string
	for _, other := range slices.Sorted(maps.Keys(e.opts.Settings.Load().Environments)) {
		if e.opts.Settings.Load().Environments[other].Install {
			others = append(others, other)
		}
	}
	if len(others) > 0 {
		err.Hint = "they can in " + strings.Join(others, ", ")
	}
	return err
}

// packageLines lists packages with their versions.
func packageLines(interpreter sandbox.Interpreter, all []deps.InstalledPackage, names []string, between string) string {
	lines := make([]string, 0, len(names))
	for _, name := range names[:min(len(names), 200)] {
		bare := name
		if at := strings.IndexAny(name[min(len(name), 1):], "=<>!~@[ ^"); at >= 0 { // an @ in front is a scope
			bare = name[:at+1]
		}
		one, ok := deps.Find(interpreter, all, bare)
		if !ok {
			lines = append(lines, sanitize.Line(bare, 100)+": not installed")
			continue
		}
		lines = append(lines, one.Name+" "+one.Version)
	}
	if more := len(names) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, between)
}

// add builds an environment with more packages for a principal. Programs use it once it is built; until then, and if the build
// fails, they use the previous one. Concurrent calls run one after the other, each adding to the result of the last.
func (e *Environments) add(ctx context.Context, key extraKey, names []string) (*building, error) {
	turn := e.installLock(key)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, &tool.Error{Kind: tool.Timeout, Message: "environment " + key.name + " is being installed", Hint: "try again in a moment"}
	}
	all, after, err := e.withExtras(key, names)
	if err != nil {
		return nil, err
	}
	made := e.startBuild(after)
	if err := made.wait(ctx, key.name); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.extras[key] = all
	return made, nil
}

// installLock returns the lock that is held while packages are added to an environment.
func (e *Environments) installLock(key extraKey) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	key.interpreter = ""
	turn := e.installLocks[key]
	if turn == nil {
		turn = make(chan struct{}, 1)
		e.installLocks[key] = turn
	}
	return turn
}

// withExtras returns the extra packages of a principal including names, and the recipe with them.
func (e *Environments) withExtras(key extraKey, names []string) (all []string, after recipe, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all = slices.Clone(e.extras[key])
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if len(all) > maxExtras {
		return nil, recipe{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("at most %d packages can be installed", maxExtras)}
	}
	slices.Sort(all)
	return all, e.recipeLocked(key.principal, key.name).with(key.interpreter, all), nil
}
