// Package plugin runs the plugins of the folder plugins/, each in a sandbox of its own. A plugin offers tools, hooks
// around calls, recognizers of personal data, checks of programs, steps of workflows, and renderers of results. Its main
// type is [Plugins]. A plugin that a person has not reviewed, or that changed since, does not run; what it guards is then
// refused.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/gateway/plugin/folder"
	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/sleep"
)

const (
	pollEvery = 2 * time.Second
	// learnWait is how long the start of the gateway waits for plugins whose tools are not cached.
	learnWait = 10 * time.Second
	// retireAfter is how long the calls of a version that was replaced may take.
	retireAfter = 10 * time.Second
)

// Options configure plugins. Settings, Serve, Attach and Secrets are required.
type Options struct {
	// Settings are the settings in force.
	Settings config.Source
	Logger   *slog.Logger
	// Serve starts a sandbox.
	Serve Serve
	// CacheDir caches what plugins say about their functions; "" caches nothing.
	CacheDir string
	// Attach adds the tools of a plugin to the catalog; changed is to be called when they change.
	Attach func(id, description string, up *Upstream) (changed func(), err error)
	// Secrets masks the secrets of a plugin, see [redact.Book].
	Secrets *redact.Book
	// OnKinds is called with the kinds of personal data that recognizers find, when they change.
	OnKinds func(kinds []string)
}

// Plugins are the plugins of a gateway. It is safe for concurrent use.
type Plugins struct {
	opts    Options
	offers  offers
	started atomic.Int64
	state   atomic.Pointer[state]
	stop    context.CancelFunc
	work    sync.WaitGroup
	// learning are the starts of plugins whose tools are not known.
	learning sync.WaitGroup

	changing sync.Mutex
	closed   bool
	attached sync.Map // changed functions by name
}

// Plugin is one plugin, as an operator sees it.
type Plugin struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Folder      string `json:"folder,omitempty"`
	Description string `json:"description,omitempty"`
	// Status is ready, held, or off; Reason says why it does not run.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Offers and Asks are in words.
	Offers []string `json:"offers,omitempty"`
	Asks   []string `json:"asks,omitempty"`
}

// The values of Plugin.Status.
const (
	Ready = "ready"
	Held  = "held"
	Off   = "off"
)

// entry is one plugin of a state.
type entry struct {
	name   string
	plugin folder.Plugin
	guards []string
	// problem is why it does not run, nil if it does.
	problem error
	runner  *runner
	offer   *atomic.Pointer[offer]
	grants  Grants
}

// state is what is in force. It does not change, except for its caches.
type state struct {
	entries map[string]*entry
	order   []*entry
	hooks   []*hook
	// matches caches the hooks of tools.
	matches sync.Map
}

// Open opens the plugins next to the settings. Their sandboxes are started when they are needed. It fails if it cannot
// learn what plugins guard.
func Open(opts Options) (*Plugins, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Plugins{opts: opts}
	if opts.CacheDir != "" {
		p.offers.dir = filepath.Join(opts.CacheDir, folder.DirName)
	}
	p.state.Store(&state{})
	if err := p.reload(); err != nil {
		return nil, fmt.Errorf("open plugins: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.work.Go(func() { p.watch(ctx) })
	p.await(learnWait)
	return p, nil
}

// await waits until the tools of all plugins are known, up to a time.
func (p *Plugins) await(patience time.Duration) {
	known := make(chan struct{})
	p.work.Go(func() {
		p.learning.Wait()
		close(known)
	})
	select {
	case <-known:
	case <-time.After(patience):
	}
}

// dir returns the folder of the plugins, "" without settings in a file.
func (p *Plugins) dir() string {
	if cfg := p.opts.Settings.Load(); cfg.Dir != "" {
		return filepath.Join(cfg.Dir, folder.DirName)
	}
	return ""
}

// watch reloads the plugins after their files have changed and are stable.
func (p *Plugins) watch(ctx context.Context) {
	last := folder.State(p.dir())
	seen := last
	for sleep.For(ctx, pollEvery) == nil {
		now := folder.State(p.dir())
		settled := now == seen
		if seen = now; settled && now != last {
			last = now
			p.Reload()
		}
	}
}

// Reload reads settings and plugins again, and puts them into force. After an error the last ones stay in force.
func (p *Plugins) Reload() {
	if err := p.reload(); err != nil {
		p.opts.Logger.Error("plugins are not reloaded, the last ones stay in force", "error", err)
	}
}

func (p *Plugins) reload() error {
	p.changing.Lock()
	defer p.changing.Unlock()
	if p.closed {
		return nil
	}
	old := p.state.Load()
	next, err := p.read(old)
	if err != nil {
		return err
	}
	p.state.Store(next)
	kinds := next.kinds()
	if p.opts.OnKinds != nil && !slices.Equal(kinds, old.kinds()) {
		p.opts.OnKinds(kinds)
	}
	for _, e := range next.order {
		p.attach(e)
	}
	for name, e := range old.entries {
		if now := next.entries[name]; e.runner != nil && (now == nil || now.runner != e.runner) {
			p.work.Go(func() { e.runner.retire(retireAfter) })
		}
		if now := next.entries[name]; now == nil || now.offer != e.offer {
			p.changed(name)
		}
	}
	return nil
}

// read reads all plugins. Those that are unchanged keep their sandboxes.
func (p *Plugins) read(old *state) (*state, error) {
	s := &state{entries: map[string]*entry{}}
	dir := p.dir()
	if dir == "" {
		return s, nil
	}
	names, err := folder.List(dir)
	if err != nil {
		return nil, err
	}
	lock, err := folder.ReadLock(dir)
	if err != nil {
		return nil, err
	}
	names = slices.Compact(slices.Sorted(slices.Values(slices.Concat(names, slices.Collect(maps.Keys(lock))))))
	cfg := p.opts.Settings.Load()
	for _, name := range names {
		grants := cfg.Plugins[name]
		reviewed, known := lock[name]
		e := p.entry(dir, name, reviewed, known, grants)
		if before := old.entries[name]; before != nil && before.same(e) {
			e = before
		} else {
			p.prepare(e, reviewed)
		}
		s.entries[name] = e
		s.order = append(s.order, e)
	}
	s.hooks = hooksOf(s.order)
	return s, nil
}

// entry reads one plugin.
func (p *Plugins) entry(dir, name string, reviewed folder.Reviewed, known bool, grants Grants) *entry {
	e := &entry{name: name, guards: reviewed.Guards, grants: grants}
	var err error
	e.plugin, err = folder.Read(filepath.Join(dir, name))
	switch {
	case grants.Off:
		e.guards, e.problem = nil, errOff
	case err != nil:
		e.problem = err
	case !known:
		e.problem = errors.New("nobody has reviewed it")
	case len(e.plugin.Changes(reviewed)) > 0:
		e.problem = fmt.Errorf("it changed since it was reviewed: %s", strings.Join(e.plugin.Changes(reviewed), ", "))
	default:
		e.problem = ungranted(&e.plugin, grants)
	}
	return e
}

var errOff = errors.New("the settings turn it off")

// ungranted returns an error for what a plugin asks for and is not granted.
func ungranted(p *folder.Plugin, grants Grants) error {
	if grants.Problem != "" {
		return errors.New(grants.Problem)
	}
	var missing []string
	for _, host := range p.Hosts {
		if !slices.Contains(grants.Hosts, host) {
			missing = append(missing, "hosts: ["+host+"]")
		}
	}
	for _, name := range p.Secrets {
		if grants.Secrets[name] == "" {
			missing = append(missing, "secrets: {"+name+": ...}")
		}
	}
	for _, name := range p.Files {
		if grants.Files[name] == "" {
			missing = append(missing, "files: {"+name+": ...}")
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("it asks for what upstreams.yaml does not grant: plugins: {%s: {%s}}", p.Name, strings.Join(missing, ", "))
	}
	return nil
}

// same reports whether an entry is as another one, which was only read.
func (e *entry) same(now *entry) bool {
	return fmt.Sprint(e.problem) == fmt.Sprint(now.problem) && reflect.DeepEqual(e.plugin, now.plugin) && reflect.DeepEqual(e.grants, now.grants) && slices.Equal(e.guards, now.guards)
}

// prepare makes the runner of an entry, and logs why it has none.
func (p *Plugins) prepare(e *entry, reviewed folder.Reviewed) {
	e.offer = &atomic.Pointer[offer]{}
	if e.problem != nil {
		if !errors.Is(e.problem, errOff) {
			p.opts.Logger.Warn("plugin is held", "plugin", e.name, "reason", e.problem.Error())
		}
		return
	}
	e.offer.Store(p.offers.load(reviewed.Offer))
	e.runner = p.newRunner(e, reviewed.Offer)
}

// newRunner returns the runner of an entry. wanted is the digest of its offer, "" for any.
func (p *Plugins) newRunner(e *entry, wanted string) *runner {
	secrets := make([]string, 0, len(e.grants.Secrets))
	asked := Grants{Hosts: e.plugin.Hosts, Secrets: config.Secrets{}, Files: map[string]string{}}
	for _, name := range e.plugin.Secrets {
		asked.Secrets[name] = e.grants.Secrets[name]
		secrets = append(secrets, e.grants.Secrets[name])
	}
	for _, name := range e.plugin.Files {
		asked.Files[name] = e.grants.Files[name]
	}
	return &runner{
		plugin: e.plugin, grants: asked, serve: p.opts.Serve, log: p.opts.Logger, secrets: p.opts.Secrets.For("", secrets...), wanted: wanted, quit: make(chan struct{}),
		// Of a fixed length: runsc takes a prefix of an id for the id.
		id:      func() string { return fmt.Sprintf("plugin-%06d", p.started.Add(1)) },
		slots:   [2]chan struct{}{make(chan struct{}, slots), make(chan struct{}, slots)},
		onOffer: func(o *offer) { p.offered(e, o) },
	}
}

// slots is how many calls of one kind a plugin works on at once.
const slots = 8

// offered takes what a plugin says about its functions.
func (p *Plugins) offered(e *entry, o *offer) {
	before := e.offer.Swap(o)
	if before == nil || before.digest() != o.digest() {
		p.offers.save(o)
		p.changed(e.name)
	}
}

// attach adds the tools of a plugin to the catalog, and starts it if they are not known.
func (p *Plugins) attach(e *entry) {
	if e.runner == nil || len(e.plugin.Tools) == 0 {
		return
	}
	if _, known := p.attached.Load(e.name); known {
		p.changed(e.name)
	} else {
		up := &Upstream{plugins: p, name: e.name}
		changed, err := p.opts.Attach(e.name, e.plugin.Description, up)
		if err != nil {
			p.opts.Logger.Error("the tools of a plugin are not available", "plugin", e.name, "error", err)
			return
		}
		p.attached.Store(e.name, changed)
	}
	if e.offer.Load() == nil {
		p.learning.Go(func() { _, _ = e.runner.acquire(context.Background()) })
	}
}

// changed tells the catalog that the tools of a plugin have changed.
func (p *Plugins) changed(name string) {
	if changed, ok := p.attached.Load(name); ok {
		changed.(func())()
	}
}

// Has reports whether an upstream is a plugin.
func (p *Plugins) Has(id string) bool {
	e := p.state.Load().entries[id]
	return e != nil && len(e.plugin.Tools) > 0
}

// Reaches reports whether a plugin may reach hosts.
func (p *Plugins) Reaches(name string) bool {
	e := p.state.Load().entries[name]
	return e != nil && len(e.plugin.Hosts) > 0
}

// kinds returns the kinds of personal data that recognizers find, sorted.
func (s *state) kinds() (kinds []string) {
	for _, e := range s.order {
		for _, r := range e.plugin.Recognizers {
			kinds = append(kinds, r.Kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// List returns the plugins, by name.
func (p *Plugins) List() []Plugin {
	var list []Plugin
	for _, e := range p.state.Load().order {
		m := e.plugin.Manifest
		one := Plugin{Name: e.name, Version: m.Version, Folder: e.plugin.Dir, Description: m.Description, Status: Ready, Offers: m.Offers(), Asks: m.Asks()}
		switch {
		case errors.Is(e.problem, errOff):
			one.Status, one.Reason = Off, e.problem.Error()
		case e.problem != nil:
			one.Status, one.Reason = Held, e.problem.Error()
		default:
			if why := e.runner.offReason(); why != "" {
				one.Status, one.Reason = Off, why
			}
		}
		list = append(list, one)
	}
	return list
}

// Close stops all plugins, and waits until their sandboxes are removed. It is idempotent.
func (p *Plugins) Close() {
	p.stop()
	p.changing.Lock()
	p.closed = true
	p.changing.Unlock()
	for _, e := range p.state.Load().order {
		if e.runner != nil {
			e.runner.close()
		}
	}
	p.work.Wait()
}
