package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/codegen"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/trust"
	"sallyport/gateway/upstream"
	"sallyport/internal/argcheck"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// member is one upstream in the catalog, from the settings that brought it to
// those that change it or leave it out.
type member struct {
	id string
	// booted is closed when session and view are there. Anyone who gets a member from
	// catalog.member need not wait for it.
	booted  chan struct{}
	session session
	own     InProcess // nil for one of the settings
	// cfg may change without a new session in the descriptive fields only.
	cfg   atomic.Pointer[config.Upstream]
	view  atomic.Pointer[view] // never nil
	tried atomic.Bool          // there is a view to show, or the first attempt to connect is over
	fresh atomic.Bool          // the view is of this run, not of the cache
	stale atomic.Bool          // the snapshot does not show the view
	shown chan struct{}        // closed when the snapshot shows what came of the first attempt
	ended <-chan struct{}      // closed when it has been retired

	replaced atomic.Bool // by other settings
	cancel   context.CancelFunc
	poked    chan struct{}                           // another attempt to connect need not wait
	auth     upstream.Authorizer                     // nil for none
	login    login                                   // nil where nobody can log in
	begin    func(connect func(ctx context.Context)) // in work, until cancel
	work     sync.WaitGroup
	calls    usage

	taking sync.Mutex // held while the view is being made

	unsaved atomic.Bool // the cache does not have the view

	// What follows belongs to the catalog's goroutine: the view that the next
	// snapshot shows, and how; whether shown is closed.
	seen     *view
	portrait *portrait
	isShown  bool
}

// session is how a member reaches its upstream.
type session interface {
	Connect(ctx context.Context) error
	// Refresh connects, or has the list of tools made again.
	Refresh(ctx context.Context) error
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	State() upstream.State
	// Reset forgets earlier failures.
	Reset()
	Close() error
}

// newMember makes a member that boot must follow.
func newMember(up config.Upstream) *member {
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{id: up.ID, poked: make(chan struct{}, 1), booted: make(chan struct{}), shown: make(chan struct{}), ended: ctx.Done(), cancel: cancel}
	m.begin = func(connect func(ctx context.Context)) { m.work.Go(func() { connect(ctx) }) }
	m.cfg.Store(&up)
	m.view.Store(&view{})
	m.stale.Store(true)
	return m
}

// boot reads what the cache has of the member, and starts it.
func (m *member) boot(c *Catalog) {
	if m.own != nil {
		m.bootOwn(c)
		return
	}
	up := *m.cfg.Load()
	known := c.cache.load(up)
	if known != nil {
		membership{c}.take(m, *known)
		m.tried.Store(!c.opts.Fresh)
	}
	m.unsaved.Store(known == nil)
	m.session = upstream.New(settings(up), membership{c}.sessionOptions(m, known))
	m.begin(func(ctx context.Context) { membership{c}.connect(ctx, m, known != nil) })
	close(m.booted)
}

// membership connects upstreams and keeps what they offer.
type membership struct{ *Catalog }

func (c membership) sessionOptions(m *member, known *tool.Offer) *upstream.Options {
	opts := &upstream.Options{
		Logger: c.log.With("upstream", m.id), Version: c.opts.Version, Known: known, Asks: c.opts.Asks, NoRoots: c.opts.NoRoots, Auth: m.auth, Secrets: c.opts.Secrets, Budget: c.opts.Budget,
		OnOffer: func(offer tool.Offer) {
			changed := c.take(m, offer)
			m.fresh.Store(true) // not before: see find
			if changed {
				m.unsaved.Store(true)
				c.show(m)
			}
		},
	}
	if c.opts.OnNotice != nil {
		opts.OnNotice = func(method string, params json.RawMessage) { c.opts.OnNotice(m.id, method, params) }
	}
	return opts
}

// authorize makes what brings the member's tokens; those that there are must not be seen.
func (m *member) authorize(c *Catalog) {
	up := m.cfg.Load()
	if c.opts.Auth == nil || up.URL == "" || up.Problem != "" {
		return
	}
	m.auth = c.opts.Auth(*up)
	m.login, _ = m.auth.(login)
	if s, ok := m.auth.(interface{ Secrets() []string }); ok {
		for _, token := range s.Secrets() {
			c.opts.Secrets.Learn(m.id, token)
		}
	}
}

func settings(up config.Upstream) upstream.Settings {
	return upstream.Settings{
		ID: up.ID, Problem: up.Problem, Command: up.Command, Args: up.Args, Env: up.Env, Dir: up.Dir,
		URL: up.URL, Headers: up.Headers, Socket: up.Socket, Transport: up.Transport,
		Include: up.Include, Exclude: up.Exclude, Rename: up.Rename,
		Timeout: up.Timeout, Concurrency: up.Concurrency, MaxMessage: int64(up.MaxMessage), Idle: idle(up), NoTraceContext: up.NoTraceContext,
	}
}

// idle is how long a session may be without a call: one that is to be there always, for ever.
func idle(up config.Upstream) time.Duration {
	if up.Eager {
		return 0
	}
	return up.Idle
}

// take makes a view of what the upstream offers, and reports whether it differs
// from the last. Calls see it at once, searches and programs with the next snapshot.
func (c membership) take(m *member, offer tool.Offer) bool {
	m.taking.Lock()
	defer m.taking.Unlock()
	return c.judge(m, offer)
}

// retake looks again at what the upstream offers, under other settings or
// approvals, and reports whether the view differs from the last.
func (c membership) retake(m *member) bool {
	m.taking.Lock()
	defer m.taking.Unlock()
	v := m.view.Load()
	return v.known && c.judge(m, v.whole)
}

// judge is called with taking held.
func (c membership) judge(m *member, offer tool.Offer) bool {
	old := m.view.Load()
	next := newView(offer, reviews(c).held(m, offer.Tools), old)
	if next.same(old) {
		return false
	}
	m.view.Store(next)
	return true
}

// show asks for a snapshot with the member's view.
func (c membership) show(m *member) {
	m.stale.Store(true)
	c.touch()
}

// look takes the view for the next snapshot, and reports whether it is a new one.
func (c membership) look(m *member) bool {
	if !m.stale.Swap(false) {
		return false
	}
	m.seen = m.view.Load()
	m.portrait = newPortrait(m.describe(observations(c).observedTools(m.seen)), m.seen.held)
	return true
}

// describe is the upstream as wrappers and index are made from it.
func (m *member) describe(tools []tool.Tool) codegen.Upstream {
	offer := m.seen.offer
	return codegen.Upstream{
		ID: m.id, Title: offer.Server.Name, Description: m.cfg.Load().Description,
		Tools: tools, Resources: offer.Resources, Templates: offer.Templates, Prompts: offer.Prompts,
	}
}

// offers tells of resources and prompts as they are now.
func (m *member) offers(lang codegen.Language) string {
	offer := m.view.Load().offer
	return codegen.Offers(codegen.Upstream{ID: m.id, Resources: offer.Resources, Templates: offer.Templates, Prompts: offer.Prompts}, lang)
}

func (m *member) offered() Offered {
	up := m.cfg.Load()
	return Offered{ID: m.id, Name: up.Name, Description: up.Description, Offer: m.view.Load().offer, State: m.state(), Unknown: !m.tried.Load()}
}

func (m *member) status() Upstream {
	up, v := m.cfg.Load(), m.view.Load()
	status := Upstream{
		ID: m.id, Name: up.Name, Description: up.Description, State: m.state(),
		Known: v.known, Cached: v.known && !m.fresh.Load(),
	}
	status.Arriving = !status.Cached && !m.isSearched()
	status.State.Tools, status.Held = len(v.entries), len(v.held)
	return status
}

// isSearched reports whether searches have seen the result of the first attempt to connect.
func (m *member) isSearched() bool {
	select {
	case <-m.shown:
		return true
	default:
		return false
	}
}

// state is that of the session, or of one that is about to be there.
func (m *member) state() upstream.State {
	select {
	case <-m.booted:
		return m.session.State()
	default:
		return upstream.State{Status: upstream.Idle}
	}
}

// call runs one call, for which calls.begin was called.
func (m *member) call(ctx context.Context, c tool.Call) (tool.Result, error) {
	defer m.calls.end()
	result, err := m.session.Call(ctx, c)
	if err != nil && ctx.Err() == nil && m.replaced.Load() && m.session.State().Status == upstream.Closed {
		return tool.Result{}, &tool.Error{
			Kind: tool.Upstream, Message: "upstream " + m.id + " was changed in the settings during the call", Err: err,
			Hint: "whether the call took effect is not known; look before you repeat it",
		}
	}
	return result, err
}

// close ends the member and waits for it. It is idempotent.
func (m *member) close() error {
	m.calls.close()
	m.cancel()
	<-m.booted
	err := m.session.Close()
	m.work.Wait()
	return err
}

// view is what an upstream offers, as far as it may be used. It does not change.
type view struct {
	known   bool                  // the upstream has said so, now or in an earlier run
	whole   tool.Offer            // with what is held
	offer   tool.Offer            // without
	entries map[string]*Entry     // of offer, by tool.ID.Name
	held    map[string]trust.Held // by tool.ID.Name
	rest    [sha256.Size]byte     // of all but the tools
}

// newView keeps of the old view what has not changed.
func newView(offer tool.Offer, held map[string]trust.Held, old *view) *view {
	v := &view{known: true, whole: offer, offer: offer, entries: make(map[string]*Entry, len(offer.Tools)), held: map[string]trust.Held{}}
	v.offer.Tools = nil
	for _, t := range offer.Tools {
		if h, ok := held[t.Wire]; ok {
			v.held[t.ID.Name] = h
			continue
		}
		e := old.entries[t.ID.Name]
		if e == nil || e.Digest() != t.Digest() {
			e = newEntry(t)
		}
		v.entries[t.ID.Name] = e
		v.offer.Tools = append(v.offer.Tools, t)
	}
	rest := v.offer
	rest.Tools = nil
	if data, err := json.Marshal(rest); err == nil {
		v.rest = sha256.Sum256(data)
	}
	return v
}

// same reports whether two views, one made after the other, show the same.
func (v *view) same(old *view) bool {
	digests := func(a, b trust.Held) bool { return a.Digest == b.Digest }
	return v.known == old.known && v.rest == old.rest && maps.Equal(v.entries, old.entries) && maps.EqualFunc(v.held, old.held, digests)
}

func (v *view) names() []string { return slices.Sorted(maps.Keys(v.entries)) }

// Entry is one tool. What a call of it needs is made by the first call, and kept
// for as long as the definition stays.
type Entry struct {
	tool.Tool
	Schema      func() *argcheck.Schema
	DefaultArgs func() map[string]any // of the arguments at the top
	Digest      func() string         // Digest, made once
	Declares    func() bool           // what its results look like is in the definition
}

func newEntry(t tool.Tool) *Entry {
	return &Entry{
		Tool:        t,
		Schema:      sync.OnceValue(func() *argcheck.Schema { return argcheck.Compile(t.Input) }),
		DefaultArgs: sync.OnceValue(func() map[string]any { return toolcall.Defaults(t.Input) }),
		Digest:      sync.OnceValue(t.Digest),
		Declares:    sync.OnceValue(func() bool { return len(t.Output) > 0 && codegen.DeclaresResult(t) }),
	}
}

// usage counts calls under way, and refuses more once it is closed. The zero value is open.
type usage struct {
	mu     sync.Mutex
	calls  int
	closed bool
	idle   chan struct{} // made by close, closed when closed and without calls
}

// begin notes a call, unless it is closed. After true, end must follow.
func (u *usage) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.calls++
	return true
}

// end notes the end of a call.
func (u *usage) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls--; u.closed && u.calls == 0 {
		close(u.idle)
	}
}

// close refuses further calls and returns what is closed when none is left.
func (u *usage) close() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.closed, u.idle = true, make(chan struct{})
		if u.calls == 0 {
			close(u.idle)
		}
	}
	return u.idle
}
