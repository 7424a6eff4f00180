package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

const (
	// maxPeople is how many principals have a session to one upstream at a time, if one of them can be closed.
	maxPeople = 64
	// personIdle is how long a session without calls is kept.
	personIdle = 10 * time.Minute
	// maxLogins is how often one call waits for a login.
	maxLogins = 2
)

// people are the sessions to an upstream with auth.per: principal, one for each principal. Calls without a principal use the
// session of the operator's login. The tools that the catalog shows are those of the operator's login, else those of the
// principal that connects first, as long as it has a session.
type people struct {
	session // of the operator
	member  *member
	catalog membership
	// await waits until the caller has logged in after that time.
	await func(ctx context.Context, up config.Upstream, call tool.Call, after time.Time) error

	mu       sync.Mutex
	sessions map[string]*person
	replaced map[*person]bool // in use, and no longer in sessions
	provider string           // the catalog shows its tools; "" while no principal's have been taken
	closed   bool
	closing  sync.WaitGroup
}

// person is the session of one principal.
type person struct {
	session
	login    login
	users    int
	lastUsed time.Time
}

// Call calls a tool with the login of the caller. If there is none it waits until the caller has logged in, and then makes
// the call: an upstream that refused the token has not made it.
func (p *people) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if tool.Principal(ctx) == "" {
		return p.session.Call(ctx, c)
	}
	if m := c.Tool.Method(); m == tool.Subscribe || m == tool.Unsubscribe {
		return tool.Result{}, toolcall.Invalid("upstream "+p.member.id+" has no subscriptions: its principals have logins of their own", "read the resource again")
	}
	for tries := 0; ; tries++ {
		begin := time.Now()
		one, result, err := p.try(ctx, c)
		if !one.needsLogin(err) || tries == maxLogins || p.refuse(ctx, one) {
			return result, err
		}
		if err := p.await(ctx, *p.member.cfg.Load(), c, begin); err != nil {
			return tool.Result{}, err
		}
		p.replace(tool.Principal(ctx), one)
	}
}

// refuse reports whether the upstream has no login to wait for, as it needs a token of the caller in exchange. The next call opens a
// new session, as it may come with one.
func (p *people) refuse(ctx context.Context, one *person) bool {
	if !p.member.cfg.Load().Auth.Exchange.Only() {
		return false
	}
	p.replace(tool.Principal(ctx), one)
	return true
}

// try makes a call once.
func (p *people) try(ctx context.Context, c tool.Call) (*person, tool.Result, error) {
	one, leave, err := p.enter(ctx)
	if err != nil {
		return nil, tool.Result{}, err
	}
	defer leave()
	result, err := one.Call(ctx, c)
	return one, result, err
}

// needsLogin reports whether a call failed because its principal has to log in.
func (o *person) needsLogin(err error) bool {
	e, ok := errors.AsType[*tool.Error](err)
	return ok && o != nil && (upstream.NeedsLogin(err) || e.Kind == tool.Denied && o.State().Login)
}

// Connect connects the caller's session. If the tools are known a missing login is no error: a call waits for the login, and
// its definition is compared again before it is sent.
func (p *people) Connect(ctx context.Context) error {
	return p.with(ctx, func(s session) error {
		err := s.Connect(ctx)
		one, ok := s.(*person)
		switch {
		case !ok || !one.needsLogin(err) || p.refuse(ctx, one) || !p.member.view.Load().known:
			return err
		}
		return nil
	})
}

// Refresh lists the tools again in the caller's session.
func (p *people) Refresh(ctx context.Context) error {
	return p.with(ctx, func(s session) error { return s.Refresh(ctx) })
}

func (p *people) with(ctx context.Context, do func(s session) error) error {
	if tool.Principal(ctx) == "" {
		return do(p.session)
	}
	one, leave, err := p.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return do(one)
}

// enter returns the caller's session. Call leave after its use.
func (p *people) enter(ctx context.Context) (one *person, leave func(), err error) {
	who := tool.Principal(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, toolcall.ClosedError()
	}
	one = p.sessions[who]
	if one == nil {
		p.sweep()
		one = p.open(who)
		p.sessions[who] = one
	}
	one.users++
	one.noticeLogin()
	return one, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		one.users--
		one.lastUsed = time.Now()
		p.closeReplaced(one)
	}, nil
}

// replace makes the next call of a principal open a new session: the upstream refuses all requests of this one, which may not
// know it yet.
func (p *people) replace(who string, one *person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[who] == one && !p.closed {
		delete(p.sessions, who)
		p.replaced[one] = true
		p.closeReplaced(one)
	}
}

// closeReplaced closes a replaced session that is no longer used. It is called with mu held.
func (p *people) closeReplaced(one *person) {
	if p.replaced[one] && one.users == 0 {
		delete(p.replaced, one)
		p.closing.Go(func() { _ = one.Close() }) // an error is of a connection that is no longer used
	}
}

// open returns a new session of a principal. It is called with mu held.
func (p *people) open(who string) *person {
	m, c := p.member, p.catalog
	up := *m.cfg.Load()
	auth := c.opts.PersonAuth(up, who)
	opts := c.sessionOptions(m, nil)
	opts.Auth, opts.OnNotice = auth, func(string, json.RawMessage) {} // a notice would reach all clients
	opts.Logger = opts.Logger.With("principal", who)
	take := opts.OnOffer
	opts.OnOffer = func(offer tool.Offer) { p.takeOffer(who, offer, take) }
	one := &person{session: upstream.New(up, opts), lastUsed: time.Now()}
	one.login, _ = auth.(login)
	return one
}

// noticeLogin resets a session that waits for a login, if its principal has logged in, at a page or by another process; and one that
// failed, if its principal comes with another token to exchange.
func (o *person) noticeLogin() {
	state := o.State()
	if o.login == nil || state.Status != upstream.Failed && state.Status != upstream.Parked {
		return
	}
	status, err := o.login.Status()
	if err == nil && status.LoggedIn && (state.Login || status.Exchanged) && (status.IsSince(state.Since) || status.Renewed.After(state.Since)) {
		o.Reset()
	}
}

// takeOffer passes on the tools that a principal sees, unless those of the operator's session or of another principal's are
// shown. Resources are its own.
func (p *people) takeOffer(who string, offer tool.Offer, take func(offer tool.Offer)) {
	p.mu.Lock()
	_, provided := p.sessions[p.provider]
	mine := p.session.State().Status != upstream.Ready && (!provided || p.provider == who)
	if mine {
		p.provider = who
	}
	p.mu.Unlock()
	if mine {
		offer.Resources = nil
		take(offer)
	}
}

// sweep closes idle sessions, and the longest unused ones if there are too many. It is called with mu held.
func (p *people) sweep() {
	byAge := slices.SortedFunc(maps.Keys(p.sessions), func(a, b string) int { return p.sessions[a].lastUsed.Compare(p.sessions[b].lastUsed) })
	for _, who := range byAge {
		one := p.sessions[who]
		if one.users > 0 || time.Since(one.lastUsed) < personIdle && len(p.sessions) < maxPeople {
			continue
		}
		delete(p.sessions, who)
		p.closing.Go(func() { _ = one.Close() }) // an error is of a connection that is no longer used
	}
}

// Close closes all sessions and waits for them. It is idempotent.
func (p *people) Close() error {
	p.mu.Lock()
	p.closed = true
	for one := range p.replaced {
		p.closing.Go(func() { _ = one.Close() })
	}
	clear(p.replaced)
	for _, one := range p.sessions {
		p.closing.Go(func() { _ = one.Close() })
	}
	p.mu.Unlock()
	err := p.session.Close()
	p.closing.Wait()
	return err
}

// perPrincipal reports whether the principals have logins of their own at an upstream. Nothing is learned from its results:
// they may differ by principal.
func perPrincipal(c *Catalog, id string) bool {
	m := c.roster.Load().byID[id]
	return m != nil && m.cfg.Load().Auth.Per == config.PerPrincipal
}
