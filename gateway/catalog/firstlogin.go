package catalog

import (
	"context"
	"regexp"
	"slices"
	"time"

	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

// shownTimeout bounds the wait until the tools that a login has shown can be imported.
const shownTimeout = 5 * time.Second

// AwaitLogins waits until the caller has logged in to the upstreams with auth.per: principal that a program imports, if their tools
// are unknown before the first login: no call of the program could wait. client is asked to open the page; nil for none.
// visible reports whether the caller sees an upstream. Without a login the program finds no wrappers, and an error that says so.
func AwaitLogins(ctx context.Context, c *Catalog, code string, client tool.Peer, visible func(id string) bool) {
	if tool.Principal(ctx) == "" {
		return
	}
	for _, m := range c.roster.Load().members {
		if !m.hasBooted() {
			continue
		}
		if p := m.people; p != nil && !m.view.Load().known && imports(code, m.id) && visible(m.id) && p.awaitOffer(ctx, client) == nil {
			readiness{c}.awaitTools(ctx, m.id)
		}
	}
}

// exchangeTimeout bounds the wait for upstreams that are connected by the token of a caller.
const exchangeTimeout = 10 * time.Second

// ConnectExchanges connects the caller to the upstreams with unknown tools that get a token in exchange for its own: without a login,
// the first call must do it. visible reports whether the caller sees an upstream.
func ConnectExchanges(ctx context.Context, c *Catalog, visible func(id string) bool) {
	if tool.Principal(ctx) == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	for _, m := range c.roster.Load().members {
		if m.hasBooted() && m.people != nil && m.cfg.Load().Auth.Exchange.Only() && !m.view.Load().known && visible(m.id) && m.people.Connect(ctx) == nil {
			readiness{c}.awaitTools(ctx, m.id)
		}
	}
}

// hasBooted reports whether the fields of the member that its start sets, such as session and view, can be read.
func (m *member) hasBooted() bool {
	select {
	case <-m.booted:
		return true
	default:
		return false
	}
}

// imports reports whether a program imports the wrappers of an upstream.
func imports(code, id string) bool {
	name := regexp.QuoteMeta(id)
	found, err := regexp.MatchString(`\bservers[./]`+name+`\b|\bfrom\s+servers\s+import\b[^\n]*\b`+name+`\b`, code)
	return err == nil && found
}

// awaitOffer waits until the caller has logged in, and lists the tools in its session.
func (p *people) awaitOffer(ctx context.Context, client tool.Peer) error {
	begin := time.Now()
	one, leave, err := p.enter(ctx)
	if err != nil {
		return err
	}
	err = one.Connect(ctx)
	leave()
	if !one.needsLogin(err) || p.refuse(ctx, one) {
		return err
	}
	if err := p.await(ctx, *p.member.cfg.Load(), tool.Call{Peer: client}, begin); err != nil {
		return err
	}
	p.replace(tool.Principal(ctx), one)
	return p.Connect(ctx)
}

// awaitTools waits until the snapshot has tools of an upstream.
func (c readiness) awaitTools(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, shownTimeout)
	defer cancel()
	for !slices.ContainsFunc(c.Snapshot().Tools, func(t tool.Tool) bool { return t.ID.Upstream == id }) {
		if c.Closed() || sleep.For(ctx, pollInterval) != nil {
			return
		}
	}
}
