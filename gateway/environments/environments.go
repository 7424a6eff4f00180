// Package environments builds the environments that programs run in: interpreters with packages, named in the settings.
package environments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/remote"
)

// The folders in the cache directory for packages and images.
const (
	packageFolder = "packages"
	imageFolder   = "images"
)

// environmentRetry is the time until a failed build is retried.
const environmentRetry = 30 * time.Second

// Sandboxes runs programs and gives access to the local sandbox host.
type Sandboxes interface {
	Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error)
	// Local returns the host, to be used until release is called. It fails if the sandboxes are on another machine.
	Local() (host *sandbox.Host, release func(), err error)
}

// Options are the dependencies of environments.
type Options struct {
	// Settings are the settings in force.
	Settings config.Source
	// CacheDir stores packages and images; with "" no environment that needs them can be built.
	CacheDir string
	// DataDir stores which packages are kept; with "" none are.
	DataDir string
	// Records has the packages that models have installed at several gateways, if they share it.
	Records *store.Store
	Logger  *slog.Logger
	// Sandboxes runs the installation of packages.
	Sandboxes Sandboxes
	// Packages lists the packages of an environment on a worker, by interpreter, and adds those that the job adds; nil if there are no workers.
	Packages func(ctx context.Context, job sandbox.Job) (map[sandbox.Interpreter][]deps.InstalledPackage, error)
	// MayInstall returns an error if the caller may not send names of packages to an index.
	MayInstall func(ctx context.Context) error
	// MarkInterval is the time between two marks of the images and packages in use; 0 is a day.
	MarkInterval time.Duration
	// Usage describes the usage of the caller's workspace, "" for none.
	Usage func(ctx context.Context, limits sandbox.Limits) (string, error)
	// Writable reports whether programs can change files in a folder of the host; nil: in none.
	Writable func(folder string) bool
}

// limits returns the limits in the settings.
func (e *Environments) limits() sandbox.Limits {
	return execution.Program{}.Limits(e.opts.Settings.Load().Sandbox)
}

// Environments builds the environments of the settings, with the packages that models add, when they are first needed. Principals
// share the environments of the settings, but not the packages that they have installed. It is safe for concurrent use.
type Environments struct {
	opts    Options
	choices choices
	listed  listings
	turns   chan struct{} // of builds on a worker, whose capacity is how many run at once; nil on a gateway
	lease   *lease
	shared  *sharedPackages // nil on one gateway
	work    sync.WaitGroup
	quit    context.Context //nolint:containedctx // ends with the gateway: a build belongs to no request
	stop    context.CancelFunc

	mu           sync.Mutex // guards the rest
	installer    *deps.Installer
	builds       map[recipe]*building
	extras       map[extraKey][]string      // packages that a principal's model has installed
	loaded       map[string]bool            // principals whose kept packages were read
	installLocks map[extraKey]chan struct{} // a lock for installations of a principal, for all interpreters
	versions     map[versionKey]string      // by interpreter
}

// recipe is everything that an environment is built from.
type recipe struct{ name, extraPython, extraNode string }

type extraKey struct {
	principal, name string
	interpreter     sandbox.Interpreter
}

// building is the build of an environment, in progress or finished.
type building struct {
	done chan struct{}
	// The other fields are valid once done is closed.
	key   string // its key in the sandbox host, "" on a worker
	env   sandbox.Environment
	sites map[sandbox.Interpreter][]string
	// added is what a worker adds to its environment, nil for nothing, and packages are the packages then.
	added    *sandbox.Added
	packages map[sandbox.Interpreter][]deps.InstalledPackage
	// modules are the names of npm packages.
	modules  []string
	err      error
	finished time.Time
	retry    time.Duration // the time until a failed build is retried

	used time.Time // when a worker used it last; guarded by mu of Environments
}

// ready reports whether the build has succeeded.
func (m *building) ready() bool {
	select {
	case <-m.done:
		return m.err == nil
	default:
		return false
	}
}

// New returns the environments of the settings. Close it.
func New(opts Options) *Environments {
	e := &Environments{opts: opts, builds: map[recipe]*building{}, extras: map[extraKey][]string{}, loaded: map[string]bool{}, installLocks: map[extraKey]chan struct{}{}}
	e.lease = &lease{cacheDir: opts.CacheDir, log: opts.Logger}
	e.quit, e.stop = context.WithCancel(context.Background())
	if err := openShared(e); err != nil { // for an invalid name only
		opts.Logger.Error("packages that models install are not shared", "error", err)
	}
	return e
}

// Close cancels builds and waits for them. Other processes may then remove what this one has used, once it is old.
func (e *Environments) Close() {
	e.stop()
	if e.shared != nil {
		e.shared.end()
	}
	e.work.Wait()
	e.lease.close()
}

// Find returns the settings of an environment by its name, "" being the default one.
// known is false for a default one that is not in the settings: it has the host's own interpreters.
func (e *Environments) Find(name string) (full string, settings config.Environment, known bool, err error) {
	all := e.opts.Settings.Load().Environments
	if name == "" {
		name = config.DefaultEnvironment
	}
	if settings, known = e.settings(name); settings.Python.HasPattern() {
		return "", settings, false, errPattern(name, settings)
	}
	if known || name == config.DefaultEnvironment {
		return name, settings, known, nil
	}
	names := slices.Sorted(maps.Keys(all))
	refusal := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("there is no environment %q", sanitize.Line(name, 80)), Hint: "leave environment out"}
	if near := suggest.Of(name, names); near != "" {
		refusal.Hint = "did you mean " + near + "?"
	} else if len(names) > 0 {
		refusal.Hint = "there are: " + strings.Join(names, ", ")
	}
	return "", settings, false, refusal
}

// Ensure waits until an environment is built, or ctx ends, and returns its key in the sandbox host. Errors are *tool.Error.
func (e *Environments) Ensure(ctx context.Context, name string) (string, error) {
	var job sandbox.Job
	err := ensureFor(ctx, e, &job, name)
	return job.Environment, err
}

// EnsureFor is [Environments.Ensure] with a timeout, for a job, whose environment it sets.
func (e *Environments) EnsureFor(ctx context.Context, job *sandbox.Job, name string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return ensureFor(ctx, e, job, name)
}

func ensureFor(ctx context.Context, e *Environments, job *sandbox.Job, name string) error {
	name, _, known, err := e.Find(name)
	if err != nil || !known {
		return err
	}
	r := e.recipe(tool.Principal(ctx), name)
	m := e.startBuild(r)
	err = m.wait(ctx, name)
	if m.failure() != nil && r != (recipe{name: name}) { // packages that were kept, and cannot be had now
		m = e.startBuild(recipe{name: name})
		err = m.wait(ctx, name)
	}
	if err != nil {
		return err
	}
	job.Environment, job.Added = m.key, m.added
	return nil
}

func (m *building) wait(ctx context.Context, name string) error {
	select {
	case <-m.done:
	case <-ctx.Done():
		return &tool.Error{Kind: tool.Timeout, Message: "environment " + name + " is being installed", Hint: "try again in a moment"}
	}
	if m.err != nil {
		return buildError(name, m.err)
	}
	return nil
}

// buildError returns the error for a model: the whole error if it is about packages, otherwise only a reference to the operator's log.
func buildError(name string, err error) error {
	if isPackageError(err) {
		return &tool.Error{Kind: tool.Failed, Message: fmt.Sprintf("environment %s: %s", name, sanitize.Line(err.Error(), 500)), Err: err}
	}
	return &tool.Error{Kind: tool.Internal, Message: "environment " + name + " could not be made", Hint: "the operator's log says why", Err: err}
}

// isPackageError reports whether other package names can fix an error, or a worker says it to models.
func isPackageError(err error) bool {
	_, ofWorker := errors.AsType[*remote.AddError](err)
	return ofWorker || errors.Is(err, deps.ErrRefused) || errors.Is(err, deps.ErrNotFound) || errors.Is(err, deps.ErrUnsafe) || errors.Is(err, deps.ErrFailed) || errors.Is(err, deps.ErrLimit)
}

func (e *Environments) recipe(principal, name string) recipe {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.recipeLocked(principal, name)
}

// recipeLocked is called with mu held.
func (e *Environments) recipeLocked(principal, name string) recipe {
	e.loadKept(principal)
	join := func(i sandbox.Interpreter) string { return strings.Join(e.extras[extraKey{principal, name, i}], "\n") }
	return recipe{name, join(sandbox.Python), join(sandbox.Node)}
}

// with returns the recipe with the extra packages of one interpreter replaced.
func (r recipe) with(i sandbox.Interpreter, all []string) recipe {
	if i == sandbox.Node {
		r.extraNode = strings.Join(all, "\n")
	} else {
		r.extraPython = strings.Join(all, "\n")
	}
	return r
}

// startBuild starts the build of a recipe, unless it is built or in progress.
func (e *Environments) startBuild(r recipe) *building {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m := e.builds[r]; m != nil && !m.retryDue() {
		return m
	}
	m := &building{done: make(chan struct{}), retry: retryTime(e), used: time.Now()}
	if e.quit.Err() != nil {
		m.err = toolcall.ClosedError()
		close(m.done)
		return m
	}
	e.builds[r] = m
	e.work.Go(func() {
		begin := time.Now()
		m.err = e.build(e.quit, r, m)
		if m.err == nil {
			m.modules, m.err = modules(m.sites[sandbox.Node])
		}
		m.finished = time.Now()
		switch {
		case m.err == nil:
			e.opts.Logger.Info("environment is ready", "environment", r.name, "duration", time.Since(begin))
		case e.quit.Err() == nil:
			e.opts.Logger.Error("environment could not be made", "environment", r.name, "error", m.err)
		}
		close(m.done)
		if settings, _ := e.settings(r.name); m.err == nil && settings.Image != "" {
			e.pruneUnused(e.quit)
		}
	})
	return m
}

// failure returns the error of a failed build, otherwise nil.
func (m *building) failure() error {
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}

// modules returns the names of the npm packages in folders.
func modules(sites []string) (names []string, err error) {
	all, err := deps.List(sandbox.Node, sites...)
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names, err
}

// addedAge is how long packages that a worker has added are taken for granted: the operator may restart workers with other settings.
const addedAge = 10 * time.Minute

func (m *building) retryDue() bool {
	select {
	case <-m.done:
		age := time.Since(m.finished)
		return m.err != nil && age > m.retry || m.added != nil && age > addedAge
	default:
		return false
	}
}

// build builds the sandbox environment of a recipe and registers it with the host.
func (e *Environments) build(ctx context.Context, r recipe, m *building) error {
	if onWorkers(e) {
		return buildElsewhere(ctx, e, r, m)
	}
	end, err := beginTurn(ctx, e.turns)
	if err != nil {
		return err
	}
	defer end()
	host, release, err := e.opts.Sandboxes.Local()
	if err != nil {
		return err
	}
	defer release()
	if m.env, m.sites, err = compose(ctx, e, host, r); err != nil || e.turns != nil {
		return err
	}
	m.key, err = host.Define(r.name, m.env)
	return err
}

// compose makes what a recipe consists of. It returns the folders with packages, too.
func compose(ctx context.Context, e *Environments, host *sandbox.Host, r recipe) (env sandbox.Environment, sites map[sandbox.Interpreter][]string, err error) {
	settings, _ := e.settings(r.name)
	if env, err = e.root(ctx, settings); err != nil {
		return env, nil, err
	}
	root := env
	sites = map[sandbox.Interpreter][]string{}
	if settings.Python.Base != "" {
		base, err := deps.FindBase(settings.Python.Base)
		if err == nil {
			err = e.checkBase(r.name, base)
		}
		if err != nil {
			return env, nil, err
		}
		base.AddTo(&env)
		sites[sandbox.Python] = base.Sites
	}
	for _, request := range installRequests(settings, r) {
		request.Environment = root
		layer, err := e.install(ctx, host, request)
		if err != nil {
			return env, nil, err
		}
		layer.AddTo(&env)
		sites[request.Interpreter] = append([]string{layer.Dir}, sites[request.Interpreter]...)
	}
	return env, sites, nil
}

// root returns the root file system and its interpreters.
func (e *Environments) root(ctx context.Context, settings config.Environment) (env sandbox.Environment, err error) {
	env = sandbox.Environment{Root: settings.Root, Python: settings.Python.Interpreter, Node: settings.TypeScript.Interpreter}
	if settings.Root != "" {
		env.Digest, err = sandbox.DigestRoot(ctx, settings.Root)
	}
	if settings.Image == "" {
		return env, err
	}
	root, err := ImagesOf(e).pull(ctx, settings.Image, false)
	if err != nil {
		return env, err
	}
	env.Root, env.Digest = root.Dir, root.Digest
	if env.Python == "" {
		env.Python = root.Python
	}
	if env.Node == "" {
		env.Node = root.Node
	}
	return env, nil
}

// NodePackages returns a function that reports whether an environment has an npm package. For a foreign root or image, and on workers, it is always true.
func (e *Environments) NodePackages(key string) func(name string) bool {
	if key == "" {
		return nil
	}
	if onWorkers(e) {
		return func(string) bool { return true }
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for r, m := range e.builds {
		if m.ready() && m.key == key {
			settings, _ := e.settings(r.name)
			if settings.Image != "" || settings.Root != "" {
				return func(string) bool { return true }
			}
			return func(name string) bool { return slices.Contains(m.modules, name) }
		}
	}
	return nil
}

// installRequests returns the installations of an environment. Packages of the settings and of a model are resolved together.
func installRequests(settings config.Environment, r recipe) []deps.Request {
	python := deps.Request{Interpreter: sandbox.Python, Packages: slices.Concat(settings.Python.Requirements, split(r.extraPython)),
		Index: settings.Python.Index, Base: settings.Python.Base, Source: settings.Python.Source}
	node := deps.Request{Interpreter: sandbox.Node, Packages: slices.Concat(settings.TypeScript.Packages, split(r.extraNode)), Index: settings.TypeScript.Registry}
	return slices.DeleteFunc([]deps.Request{python, node}, func(r deps.Request) bool { return len(r.Packages) == 0 })
}

func split(lines string) []string {
	return strings.FieldsFunc(lines, func(r rune) bool { return r == '\n' })
}

func (e *Environments) install(ctx context.Context, host *sandbox.Host, request deps.Request) (deps.Layer, error) {
	installer, err := e.open(host)
	if err != nil {
		return deps.Layer{}, err
	}
	layer, err := installer.Install(ctx, request)
	if err == nil {
		e.lease.add(layerKey(layer.Digest), func() error { return deps.MarkUsed(layer) })
	}
	return layer, err
}

// Layer returns the layer of a request, which it installs if necessary. It is kept while this process lives.
func (e *Environments) Layer(ctx context.Context, request deps.Request) (deps.Layer, error) {
	host, release, err := e.opts.Sandboxes.Local()
	if err != nil {
		return deps.Layer{}, err
	}
	defer release()
	return e.install(ctx, host, request)
}

// open returns the installer, which it creates on first use.
func (e *Environments) open(host *sandbox.Host) (*deps.Installer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.installer != nil {
		return e.installer, nil
	}
	dir, err := e.folder(packageFolder)
	if err != nil {
		return nil, err
	}
	e.installer, err = deps.New(host, dir, &deps.Options{Logger: e.opts.Logger, InUse: e.layerInUse})
	return e.installer, err
}

// folder returns a folder in the cache directory. The lease starts before anything in there is used, and what is in
// use is marked from then on. It is called by builds only.
func (e *Environments) folder(name string) (string, error) {
	if e.opts.CacheDir == "" {
		return "", errors.New("no cache directory: set HOME or XDG_CACHE_HOME")
	}
	if e.lease.start() {
		e.work.Go(func() { e.markLoop(cmp.Or(e.opts.MarkInterval, markInterval)) })
	}
	return filepath.Join(e.opts.CacheDir, name), nil
}
