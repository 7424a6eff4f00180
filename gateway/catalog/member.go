package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"sallyport/codegen"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/trust"
	"sallyport/gateway/upstream"
	"sallyport/internal/argcheck"
	"sallyport/internal/config"
	"sallyport/internal/mcpapp"
	"sallyport/internal/tool"
)

// member is one upstream in the catalog. It lives from the settings that add it to
// those that change or remove it.
type member struct {
	id string
	// booted is closed when session and view are set. Callers of Catalog.Member
	// need not wait for it.
	booted    chan struct{}
	session   session
	people    *people   // the session if its principals have logins of their own, else nil
	inProcess InProcess // nil for an upstream from the settings
	// cfg changes without a new session if only descriptive fields differ.
	cfg   atomic.Pointer[config.Upstream]
	view  atomic.Pointer[view] // never nil
	tried atomic.Bool          // a view exists, or the first attempt to connect has ended
	fresh atomic.Bool          // the view is from this run, not from the cache
	stale atomic.Bool          // the snapshot does not show the view
	// silent means that the upstream has never answered in time: only a caller that names it waits for it.
	silent atomic.Bool
	shown  chan struct{}   // closed when the snapshot shows the result of the first attempt
	ended  <-chan struct{} // closed when the member is retired

	replaced atomic.Bool // by other settings
	cancel   context.CancelFunc
	wakeup   chan struct{}                           // signals an immediate attempt to connect
	auth     upstream.Authorizer                     // nil for none
	login    login                                   // nil if no user can log in
	spawn    func(connect func(ctx context.Context)) // runs connect in work, until cancel
	work     sync.WaitGroup
	calls    inflight

	viewMu sync.Mutex // held while the view is replaced

	unsaved atomic.Bool // the cache does not have the view

	// Only the catalog's goroutine uses these: the view that the next snapshot
	// shows and what is generated from it, and whether shown is closed.
	snapshotView *view
	artifacts    *artifacts
	isShown      bool
}

// session is a member's connection to its upstream.
type session interface {
	Connect(ctx context.Context) error
	// Refresh connects, or lists the tools again.
	Refresh(ctx context.Context) error
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	State() upstream.State
	// Reset forgets earlier failures.
	Reset()
	Close() error
}

// newMember returns a member. The caller must call boot.
func newMember(up config.Upstream) *member {
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{id: up.ID, wakeup: make(chan struct{}, 1), booted: make(chan struct{}), shown: make(chan struct{}), ended: ctx.Done(), cancel: cancel}
	m.spawn = func(connect func(ctx context.Context)) { m.work.Go(func() { connect(ctx) }) }
	m.cfg.Store(&up)
	m.view.Store(&view{})
	m.stale.Store(true)
	return m
}

// boot loads the member's cached offer and starts the member.
func (m *member) boot(c *Catalog) {
	if m.inProcess != nil {
		m.bootInProcess(c)
		return
	}
	up := *m.cfg.Load()
	known := c.cache.load(up)
	if known != nil {
		membership{c}.setOffer(m, *known)
		m.tried.Store(!c.opts.Fresh)
	}
	m.unsaved.Store(known == nil)
	m.silent.Store(known == nil && c.cache.isSilent(up))
	m.session = upstream.New(up, membership{c}.sessionOptions(m, known))
	if up.Auth.Per == config.PerPrincipal && c.opts.PersonAuth != nil {
		m.people = &people{session: m.session, member: m, catalog: membership{c}, await: c.opts.Login, sessions: map[string]*person{}, replaced: map[*person]bool{}}
		m.session = m.people
	}
	m.spawn(func(ctx context.Context) { membership{c}.connect(ctx, m, known != nil) })
	close(m.booted)
}

// membership connects upstreams and updates their views.
type membership struct{ *Catalog }

func (c membership) sessionOptions(m *member, known *tool.Offer) *upstream.Options {
	opts := &upstream.Options{
		Logger: c.log.With("upstream", m.id), Version: c.opts.Version, Known: known, Asks: c.opts.Asks, NoRoots: c.opts.NoRoots, Auth: m.auth, Secrets: c.opts.Secrets, Budget: c.opts.Budget, Isolate: c.opts.Isolate, Single: c.opts.Single,
		OnOffer: func(offer tool.Offer) {
			changed := c.setOffer(m, offer)
			m.fresh.Store(true) // not before: see find
			if changed {
				m.unsaved.Store(true)
				c.markStale(m)
			}
		},
	}
	if c.opts.Renew != nil && m.cfg.Load().Managed {
		opts.Renew = func(ctx context.Context, up config.Upstream) (config.Upstream, error) { return c.renew(ctx, m, up) }
	}
	if c.opts.OnNotice != nil {
		opts.OnNotice = func(method string, params json.RawMessage) { c.opts.OnNotice(m.id, method, params) }
	}
	return opts
}

// renew returns the settings that a session connects with: those of before, with the secrets that are valid now. The member
// has them, too, so that a reload with the same ones keeps its sessions.
func (c membership) renew(ctx context.Context, m *member, was config.Upstream) (config.Upstream, error) {
	up, err := c.opts.Renew(ctx, was)
	if err != nil || reflect.DeepEqual(up, was) {
		return was, err
	}
	now := withSecretsOf(was, up)
	if !reflect.DeepEqual(now, up) {
		return was, nil // it has other settings now, and the reload makes another session
	}
	m.cfg.Store(new(withSecretsOf(*m.cfg.Load(), up)))
	return now, nil
}

// withSecretsOf returns an upstream with the values of another in which secrets can be, for a session to connect with. Those
// of its login are not, as its authorizer has them already.
func withSecretsOf(up, other config.Upstream) config.Upstream {
	up.Args, up.Env, up.Headers, up.URL = other.Args, other.Env, other.Headers, other.URL
	up.OpenAPI, up.GraphQL, up.GRPC, up.Variables, up.Query, up.Basic = other.OpenAPI, other.GraphQL, other.GRPC, other.Variables, other.Query, other.Basic
	up.Isolate, up.Egress = other.Isolate, other.Egress
	return up
}

// authorize creates the member's authorizer and registers its tokens as secrets.
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

// setOffer replaces the view with one of the offer, and reports whether it differs
// from the previous one. Calls see it at once, searches and programs with the next snapshot.
func (c membership) setOffer(m *member, offer tool.Offer) bool {
	m.viewMu.Lock()
	defer m.viewMu.Unlock()
	return c.setOfferLocked(m, offer)
}

// reevaluate makes the view again from the same offer, after settings or approvals
// have changed, and reports whether the view has changed.
func (c membership) reevaluate(m *member) bool {
	m.viewMu.Lock()
	defer m.viewMu.Unlock()
	v := m.view.Load()
	return v.known && c.setOfferLocked(m, v.fullOffer)
}

// setOfferLocked is take with taking held.
func (c membership) setOfferLocked(m *member, offer tool.Offer) bool {
	old := m.view.Load()
	next := newView(offer, reviews(c).checkTools(m, offer.Tools), old)
	if next.equal(old) {
		return false
	}
	m.view.Store(next)
	return true
}

// markStale requests a snapshot with the member's view.
func (c membership) markStale(m *member) {
	m.stale.Store(true)
	c.requestRebuild()
}

// refreshArtifacts prepares the view for the next snapshot, and reports whether it is new.
func (c membership) refreshArtifacts(m *member) bool {
	if !m.stale.Swap(false) {
		return false
	}
	m.snapshotView = m.view.Load()
	m.artifacts = newArtifacts(m.describe(observations(c).observedTools(m.snapshotView)), m.snapshotView.held)
	return true
}

// describe returns the upstream as input for wrappers and index.
func (m *member) describe(tools []tool.Tool) codegen.Upstream {
	offer := m.snapshotView.offer
	tools = slices.DeleteFunc(tools, func(t tool.Tool) bool { return mcpapp.AppOnly(t.Raw) })
	return codegen.Upstream{
		ID: m.id, Title: offer.Server.Name, Description: m.cfg.Load().Description,
		Tools: tools, Resources: offer.Resources, Templates: offer.Templates, Prompts: offer.Prompts,
	}
}

// offersText returns the text about the current resources and prompts.
func (m *member) offersText(lang codegen.Language) string {
	offer := m.view.Load().offer
	return codegen.Offers(codegen.Upstream{ID: m.id, Resources: offer.Resources, Templates: offer.Templates, Prompts: offer.Prompts}, lang)
}

func (m *member) upstreamOffer() UpstreamOffer {
	up := m.cfg.Load()
	return UpstreamOffer{ID: m.id, Name: up.Name, Description: up.Description, Offer: m.view.Load().offer, State: m.state(), Unknown: !m.tried.Load()}
}

func (m *member) status() Upstream {
	up, v := m.cfg.Load(), m.view.Load()
	status := Upstream{
		ID: m.id, Name: up.Name, Description: up.Description, State: m.state(),
		Known: v.known, Cached: v.known && !m.fresh.Load(),
	}
	status.Arriving = !status.Cached && !m.isSearched()
	status.State.Tools, status.Held = len(v.entries), v.pending()
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

// state returns the session's state; idle until the session is set. Where principals have logins of their own, the operator
// needs none once the tools are known; before, the first login of anybody shows them.
func (m *member) state() upstream.State {
	select {
	case <-m.booted:
		s := m.session.State()
		switch {
		case !s.Login || m.cfg.Load().Auth.Per != config.PerPrincipal:
		case m.view.Load().known:
			return upstream.State{Status: upstream.Idle, Since: s.Since}
		case m.cfg.Load().Auth.Exchange.Only():
			s.Error = "no caller has come yet with a token to exchange, from " + m.cfg.Load().Auth.Exchange.Issuer
		default:
			s.Error = fmt.Sprintf("login required: the user logs in at the page /ui/connections/%[1]s of the gateway; for all, an operator runs `sallyport auth login %[1]s`", m.id)
		}
		return s
	default:
		return upstream.State{Status: upstream.Idle}
	}
}

// call runs one call. The caller must have called calls.begin.
func (m *member) call(ctx context.Context, c tool.Call) (tool.Result, error) {
	defer m.calls.end()
	result, err := m.session.Call(ctx, c)
	if err != nil && ctx.Err() == nil && m.replaced.Load() && m.session.State().Status == upstream.Closed {
		return tool.Result{}, &tool.Error{
			Kind: tool.Upstream, Message: "upstream " + m.id + " was changed in the settings during the call", Err: err,
			Hint: "the call may have taken effect; check before you repeat it",
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

// view is an upstream's offer, split into usable and held tools. It is immutable.
type view struct {
	known      bool                  // the offer is known, from this run or an earlier one
	fullOffer  tool.Offer            // with held tools
	offer      tool.Offer            // without held tools
	entries    map[string]*Entry     // of offer, by tool.ID.Name
	held       map[string]trust.Held // by tool.ID.Name
	restDigest [sha256.Size]byte     // digest of offer without its tools
}

// newView returns a view of offer. It reuses unchanged entries of old.
func newView(offer tool.Offer, held map[string]trust.Held, old *view) *view {
	v := &view{known: true, fullOffer: offer, offer: offer, entries: make(map[string]*Entry, len(offer.Tools)), held: map[string]trust.Held{}}
	v.offer.Tools = nil
	siblings := siblings(offer.Tools)
	for _, t := range offer.Tools {
		t.Siblings = siblings
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
		v.restDigest = sha256.Sum256(data)
	}
	return v
}

// siblings returns the tools with names that are no identifiers, by name; nil if there are none.
func siblings(tools []tool.Tool) map[string]string {
	var names map[string]string
	for _, t := range tools {
		if t.Wire == t.ID.Name || !strings.ContainsAny(t.Wire, "-./:") {
			continue
		}
		if names == nil {
			names = map[string]string{}
		}
		names[t.Wire] = t.ID.Name
	}
	return names
}

// equal reports whether two consecutive views have the same content.
func (v *view) equal(old *view) bool {
	same := func(a, b trust.Held) bool { return a.Digest == b.Digest && a.Rejection == b.Rejection }
	return v.known == old.known && v.restDigest == old.restDigest && maps.Equal(v.entries, old.entries) && maps.EqualFunc(v.held, old.held, same)
}

// pending returns how many tools wait for a review.
func (v *view) pending() (n int) {
	for _, h := range v.held {
		if !h.IsRejected() {
			n++
		}
	}
	return n
}

func (v *view) names() []string { return slices.Sorted(maps.Keys(v.entries)) }

// Entry is one tool. Its functions compute their values at the first call and keep
// them.
type Entry struct {
	tool.Tool
	Schema      func() *argcheck.Schema
	DefaultArgs func() map[string]any // default values of the top-level arguments
	Digest      func() string         // the cached digest
	Declares    func() bool           // the definition describes the results
	AppOnly     bool                  // only user interfaces may call it (MCP Apps)
	Form        func() tool.Form      // how the results are read, by the definition
}

func newEntry(t tool.Tool) *Entry {
	return &Entry{
		Tool:        t,
		AppOnly:     mcpapp.AppOnly(t.Raw),
		Schema:      sync.OnceValue(func() *argcheck.Schema { return argcheck.Compile(t.Input) }),
		DefaultArgs: sync.OnceValue(func() map[string]any { return toolcall.Defaults(t.Input) }),
		Digest:      sync.OnceValue(t.Digest),
		Form:        sync.OnceValue(func() tool.Form { return codegen.Form(t) }),
		Declares:    sync.OnceValue(func() bool { return len(t.Output) > 0 && codegen.DeclaresResult(t) }),
	}
}

// inflight counts calls in flight, and rejects more once it is closed. The zero value is open.
type inflight struct {
	mu     sync.Mutex
	calls  int
	closed bool
	idle   chan struct{} // made by close, closed when closed and without calls
}

// begin counts a call and reports true, or false once closed. After true, the caller must call end.
func (u *inflight) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.calls++
	return true
}

// end records the end of a call.
func (u *inflight) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls--; u.closed && u.calls == 0 {
		close(u.idle)
	}
}

// close rejects further calls. It returns a channel that is closed when no call is in flight.
func (u *inflight) close() <-chan struct{} {
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
