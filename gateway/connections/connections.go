// Package connections holds the logins of the callers at upstreams: each principal's own where the upstream has
// auth.per: principal, and the one that all share elsewhere. A login begins and ends at a page of the gateway; an API key is entered
// there. A call can wait for one. Its main type is [Connections].
package connections

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/internal/watch"
)

// The pages of the gateway for connections: their list, the redirect URL of all logins, and where that leads.
const (
	Path         = "/ui/connections"
	CallbackPath = "/ui/callback"
	FinishPath   = "/ui/finish-login"
)

// Login is a principal's login at one upstream. It also is a [Beginner] or a [Saver].
type Login interface {
	Status() (oauth.Status, error)
	// Logout revokes and deletes the tokens or the key.
	Logout(ctx context.Context) (was, revoked bool, err error)
}

// Beginner is a login at an authorization server.
type Beginner interface {
	// Begin begins a login that ends at the redirect URL.
	Begin(ctx context.Context, redirect string, scopes []string) (*oauth.Authorization, error)
}

// Saver is a login by an API key.
type Saver interface {
	// Save stores the key. The error says what is wrong with it, without showing it.
	Save(ctx context.Context, key string) error
}

// Options are the dependencies of [Connections].
type Options struct {
	// Settings are the settings in force.
	Settings config.Source
	// Login returns the login of a principal at an upstream, of "" the one that all share.
	Login func(up config.Upstream, principal string) Login
	// Site is the address of the gateway's pages, without a path; "" if it serves none.
	Site string
	// Connect connects the caller to an upstream after a login, so that its tools become known.
	Connect func(ctx context.Context, id string) error
	// Audit records an event in the audit log.
	Audit func(ctx context.Context, e audit.Event) error
	// Attempts has the logins that have begun at any gateway, nil if they are known here only.
	Attempts oauth.Records
	Logger   *slog.Logger
}

const (
	// attemptLife is how long a person may take to log in.
	attemptLife = 10 * time.Minute
	// connectTimeout bounds the connection after a login, while the person waits for a page.
	connectTimeout = 10 * time.Second
	// maxAttempts bounds the logins that have begun, of one principal and of all.
	maxAttempts, maxAttemptsAll = 8, 512
)

// Connections are the logins at all upstreams. It is safe for concurrent use.
type Connections struct {
	opts     Options
	watchers watch.List

	mu       sync.Mutex
	attempts map[string]attempt // by the state parameter
	asking   map[key]bool       // whether a client is being asked for the login
}

// key is a principal at an upstream.
type key struct{ upstream, principal string }

// attempt is a login that has begun.
type attempt struct {
	key
	authorization *oauth.Authorization
	ends          time.Time
}

// New returns the connections.
func New(opts Options) *Connections {
	return &Connections{opts: opts, attempts: map[string]attempt{}, asking: map[key]bool{}}
}

// Connection is the caller's login at one upstream, or the one that all share.
type Connection struct {
	// Upstream is the id, Name the name in the settings.
	Upstream, Name, Description string
	// Shared says that it is the login of all principals, Key that it is an API key.
	Shared, Key bool
	// Provider is the identity provider of the caller if its token is exchanged for one of the upstream, else "". ExchangeOnly says
	// that there is no other login.
	Provider     string
	ExchangeOnly bool
	oauth.Status
	// Error says why the login cannot be read, "" if it can.
	Error string
}

// Connections returns the caller's logins, and for an operator also those that all share, in the order of the settings.
func (c *Connections) Connections(ctx context.Context) (all []Connection) {
	for _, up := range c.opts.Settings.Load().Upstreams {
		if one, err := c.Connection(ctx, up.ID); err == nil && (up.UsesOAuth() || one.LoggedIn || one.Ended != "") {
			all = append(all, one)
		}
	}
	return all
}

// Connection returns the caller's login at an upstream. Errors are *tool.Error.
func (c *Connections) Connection(ctx context.Context, id string) (Connection, error) {
	up, k, err := c.find(ctx, id)
	if err != nil {
		return Connection{}, err
	}
	one := Connection{Upstream: up.ID, Name: up.Name, Description: up.Description, Shared: k.principal == "", Key: up.Auth.Type == config.AuthKey}
	if up.Auth.Exchange != nil && k.principal != "" {
		one.Provider, one.ExchangeOnly = up.Auth.Exchange.Issuer, up.Auth.Exchange.Only()
	}
	if one.Status, err = c.opts.Login(up, k.principal).Status(); err != nil {
		one.Error = sanitize.Line(err.Error(), 300)
	}
	return one, nil
}

// find returns an upstream with a login of the caller.
func (c *Connections) find(ctx context.Context, id string) (config.Upstream, key, error) {
	var ids []string
	for _, up := range c.opts.Settings.Load().Upstreams {
		if ids = append(ids, up.ID); up.ID != id {
			continue
		}
		k := key{upstream: id}
		if up.Auth.Per == config.PerPrincipal {
			k.principal = tool.Principal(ctx)
		}
		switch {
		case up.Disabled || up.Problem != "" || up.URL == "" || !up.HasLogin():
			return up, k, toolcall.Invalid("upstream "+id+" has no login", "")
		case k.principal == "" && tool.Operator(ctx) == "":
			return up, k, &tool.Error{Kind: tool.Denied, Message: "only an operator logs in to " + id + " for all", Hint: "auth.per: principal in the settings gives each principal a login of its own"}
		}
		return up, k, nil
	}
	return config.Upstream{}, key{}, toolcall.Unknown("upstream", id, suggest.Of(id, ids))
}

// How is how the caller connects to an upstream.
type How struct {
	// Scopes are requested in addition at the login page.
	Scopes []string
	// Key is the API key, for an upstream that takes one.
	Key string
}

// Connect begins a login of the caller, and returns its state parameter for [Connections.Started]. At an upstream that takes an API
// key it stores the key, and state is "". Errors are *tool.Error.
func (c *Connections) Connect(ctx context.Context, id string, how How) (state string, err error) {
	up, k, err := c.find(ctx, id)
	if err != nil {
		return "", err
	}
	switch login := c.opts.Login(up, k.principal).(type) {
	case Saver:
		return "", c.save(ctx, k, login, how.Key)
	case Beginner:
		switch {
		case how.Key != "":
			return "", toolcall.Invalid("upstream "+id+" takes no API key", "connect by its login page")
		case k.principal != "" && up.Auth.Exchange.Only():
			return "", toolcall.Invalid("upstream "+id+" has no login", "the gateway exchanges the token with which the caller signed in at "+up.Auth.Exchange.Issuer)
		}
		return c.begin(ctx, k, login, how.Scopes)
	}
	return "", toolcall.Invalid("upstream "+id+" has no login", "")
}

func (c *Connections) begin(ctx context.Context, k key, login Beginner, scopes []string) (state string, err error) {
	if c.opts.Site == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "this gateway serves no pages", Hint: "on its machine: sallyport auth login " + k.upstream}
	}
	a, err := login.Begin(ctx, c.opts.Site+CallbackPath, scopes)
	if err != nil {
		return "", &tool.Error{Kind: tool.Upstream, Message: sanitize.Line(err.Error(), 500), Err: err}
	}
	if !isWebPage(a.Page) {
		return "", &tool.Error{Kind: tool.Upstream, Message: "the authorization server of " + k.upstream + " names a page that is no web page"}
	}
	begun := attempt{k, a, time.Now().Add(attemptLife)}
	if err := c.keep(begun); err != nil {
		return "", err
	}
	return a.State, c.share(ctx, begun)
}

// Started returns the page of the authorization server for a login of the caller; false if there is no such login.
func (c *Connections) Started(ctx context.Context, state string) (page string, ok bool) {
	c.mu.Lock()
	a, ok := c.attempts[state]
	c.mu.Unlock()
	if !ok && c.opts.Attempts != nil {
		a, _, revision, err := c.findShared(ctx, state)
		if err != nil {
			c.opts.Logger.WarnContext(ctx, "find login that has begun", "error", err)
		}
		if err != nil || revision == 0 {
			return "", false
		}
		return a.authorization.Page, true
	}
	if !ok || !a.isOf(ctx) {
		return "", false
	}
	return a.authorization.Page, true
}

// isOf reports whether the caller began the login, which has not expired.
func (a attempt) isOf(ctx context.Context) bool {
	if time.Now().After(a.ends) {
		return false
	}
	if a.principal == "" {
		return tool.Operator(ctx) != ""
	}
	return a.principal == tool.Principal(ctx)
}

// isWebPage reports whether a browser may be sent to an address.
func isWebPage(page string) bool {
	u, err := url.Parse(page)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// keep remembers a login that has begun, unless there are too many.
func (c *Connections) keep(a attempt) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	for state, other := range c.attempts {
		if time.Now().After(other.ends) {
			delete(c.attempts, state)
		} else if other.principal == a.principal {
			own++
		}
	}
	if own >= maxAttempts || len(c.attempts) >= maxAttemptsAll {
		return &tool.Error{Kind: tool.Limit, Message: "too many logins have begun", Hint: "finish one, or wait 10 minutes"}
	}
	c.attempts[a.authorization.State] = a
	return nil
}

// Finish ends a login with the parameters of the redirect, once, and returns its upstream. It must be called on behalf of the
// principal that began it: otherwise one principal could give its own account to another. Errors are *tool.Error.
func (c *Connections) Finish(ctx context.Context, got url.Values) (id string, err error) {
	a, ok, err := c.take(ctx, got.Get("state"))
	if err != nil {
		return "", err
	}
	if !ok {
		return "", &tool.Error{Kind: tool.Invalid, Message: "this is no login that you have begun here", Hint: "it may have expired, or belong to another user of this browser: connect again"}
	}
	if err := a.authorization.Finish(ctx, got); err != nil {
		return a.upstream, &tool.Error{Kind: tool.Failed, Message: sanitize.Line(err.Error(), 500), Err: err}
	}
	return a.upstream, c.complete(ctx, a.key)
}

// save stores an API key.
func (c *Connections) save(ctx context.Context, k key, login Saver, value string) error {
	if err := login.Save(ctx, value); err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(err.Error(), 500), Err: err}
	}
	return c.complete(ctx, k)
}

// complete records a login, wakes the calls that wait for it, and connects.
func (c *Connections) complete(ctx context.Context, k key) error {
	c.opts.Logger.InfoContext(ctx, "logged in", "upstream", k.upstream, "principal", k.principal)
	c.watchers.Notify()
	err := c.record(ctx, audit.UpstreamLogin, k)
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := c.opts.Connect(limited, k.upstream); err != nil {
		c.opts.Logger.WarnContext(ctx, "connect after login", "upstream", k.upstream, "error", err)
	}
	return err
}

// take removes and returns a login of the caller that has begun.
func (c *Connections) take(ctx context.Context, state string) (attempt, bool, error) {
	c.mu.Lock()
	a, ok := c.attempts[state]
	ok = ok && a.isOf(ctx)
	if ok {
		delete(c.attempts, state)
	}
	c.mu.Unlock()
	if c.opts.Attempts != nil {
		return c.takeShared(ctx, state)
	}
	return a, ok, nil
}

// Disconnect ends the caller's login at an upstream: its tokens are revoked, if the server supports that, and deleted. Errors
// are *tool.Error.
func (c *Connections) Disconnect(ctx context.Context, id string) error {
	up, k, err := c.find(ctx, id)
	if err != nil {
		return err
	}
	was, _, err := c.opts.Login(up, k.principal).Logout(ctx)
	if was {
		err = errors.Join(err, c.record(ctx, audit.UpstreamLogout, k))
	}
	if err != nil {
		return &tool.Error{Kind: tool.Failed, Message: sanitize.Line(err.Error(), 500), Err: err}
	}
	return nil
}

// ForgetExchanged ends what a principal got in exchange for its token, as it has logged out or is another person now.
func (c *Connections) ForgetExchanged(ctx context.Context, principal string) {
	for _, up := range c.opts.Settings.Load().Upstreams {
		if up.Auth.Exchange == nil || up.Auth.Per != config.PerPrincipal {
			continue
		}
		login := c.opts.Login(up, principal)
		if status, err := login.Status(); err == nil && !status.Exchanged {
			continue
		}
		was, _, err := login.Logout(ctx)
		if was {
			err = errors.Join(err, c.record(tool.WithPrincipal(ctx, principal), audit.UpstreamLogout, key{up.ID, principal}))
		}
		if err != nil {
			c.opts.Logger.WarnContext(ctx, "forget exchanged tokens", "upstream", up.ID, "principal", principal, "error", err)
		}
	}
}

// Exchanged records that a principal has come to an upstream by the exchange of its token.
func (c *Connections) Exchanged(ctx context.Context, id, principal string) {
	err := c.opts.Audit(tool.WithPrincipal(ctx, principal), audit.Event{Kind: audit.UpstreamLogin, Tool: id, Note: "by token exchange"})
	if err != nil {
		c.opts.Logger.WarnContext(ctx, "audit token exchange", "upstream", id, "principal", principal, "error", err)
	}
}

// KeepsTokensOf reports whether an upstream exchanges tokens of an issuer.
func (c *Connections) KeepsTokensOf(issuer string) bool {
	for _, up := range c.opts.Settings.Load().Upstreams {
		if e := up.Auth.Exchange; e != nil && e.Issuer == issuer && !up.Disabled {
			return true
		}
	}
	return false
}

// record writes the event to the audit log.
func (c *Connections) record(ctx context.Context, kind audit.Kind, k key) error {
	if err := c.opts.Audit(ctx, audit.Event{Kind: kind, Tool: k.upstream, Note: ownerOf(k)}); err != nil {
		return tool.AsError(err)
	}
	return nil
}

// ownerOf describes the owner of a login.
func ownerOf(k key) string {
	if k.principal == "" {
		return "of all principals"
	}
	return ""
}

// Page returns the address of the page where the callers log in to an upstream, "" if there is none.
func Page(site, id string) string {
	if site == "" {
		return ""
	}
	return strings.TrimSuffix(site, "/") + Path + "/" + url.PathEscape(id)
}
