// Package oauth gets access tokens for one upstream over HTTP and keeps them: by
// the authorization code grant, which only a person at `sallyport auth login`
// starts, and by client credentials. Its main type is [Handler], which a
// session asks for tokens and tells of refusals.
//
// The SDK's parts do discovery, registration and the reading of challenges
// (discover.go, login.go); what it lacks is here: tokens that outlive the process
// (record.go, store.go), a refresh that happens once across goroutines and
// processes and names its resource (refresh.go), and logging out (logout.go).
// Whatever a server says about where to go is checked in guard.go.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Settings say for which upstream tokens are, and how they are got. They are
// shown without the secret.
type Settings struct {
	// ID is the upstream's, as in tool ids; URL is its endpoint.
	ID, URL string
	// Socket is the path of the Unix socket that leads to URL; "" is none.
	Socket string
	// Type is "" or "oauth" (authorization code) or "client_credentials". For
	// "none", and for an upstream with an Authorization header of its own, make no Handler.
	Type string
	// ClientID and ClientSecret are of a pre-registered client; "" registers one.
	ClientID, ClientSecret string
	// Issuer is the only authorization server that the client's secret may go to; "" is the one that the upstream names.
	Issuer string
	// ClientMetadata is the URL of a client id metadata document.
	ClientMetadata string
	// Scopes to ask for; empty: what the server's challenge or metadata says.
	Scopes []string
	// RedirectPort is the loopback port of a login's redirect; 0 is any.
	RedirectPort int
	// Store is "auto" (keyring if there is one, else file), "keyring" or "file"; "" is auto.
	Store string
}

// String names the upstream and nothing secret.
func (s Settings) String() string { return fmt.Sprintf("oauth settings of %q", s.ID) }

// Format writes String for every verb.
func (s Settings) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns String.
func (s Settings) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Options configure a [Handler]. The zero value is usable.
type Options struct {
	// Dir holds the tokens; "" is [Dir] of the process's environment.
	Dir string
	// Logger gets what an operator should know, never a token; nil discards it.
	Logger *slog.Logger
	// Client speaks to authorization servers; nil is one that goes to no private
	// address that the upstream does not have itself. Its CheckRedirect is ours.
	Client *http.Client
	// Browse opens a page for a person. With it set, Authorize logs in by itself
	// where it would else say that a user must; nil never does. `serve` leaves
	// it nil; it is for programs that are tests of a client.
	Browse func(ctx context.Context, page string) error
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Handler gets and keeps the tokens of one upstream. It is safe for concurrent
// use, and several processes may have one for the same upstream.
type Handler struct {
	settings Settings
	opts     Options
	log      *slog.Logger
	store    *store
	client   *http.Client
	guard    guard
	// turn is held while the token changes; a channel, so that waiting ends with a context.
	turn    chan struct{}
	machine machine
}

var _ auth.OAuthHandler = (*Handler)(nil)

// New returns a Handler. Nothing is read or sent yet; settings that cannot work
// are errors of the methods. A nil opts means the zero Options.
func New(settings Settings, opts *Options) *Handler {
	h := &Handler{settings: settings, turn: make(chan struct{}, 1)}
	if opts != nil {
		h.opts = *opts
	}
	if h.log = h.opts.Logger; h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.opts.Now == nil {
		h.opts.Now = time.Now
	}
	h.guard = newGuard(settings.URL)
	h.client = h.guard.client(h.opts.Client)
	if settings.Socket != "" {
		h.client.Transport = overSocket(settings, h.client.Transport)
	}
	h.store = &store{dir: h.opts.Dir, id: settings.ID, url: settings.URL, kind: settings.Store, now: h.opts.Now}
	return h
}

// LoginError says that a person has to do something before the upstream can be
// used: log in, log in with more scopes, or mend the client's credentials.
type LoginError struct {
	// Upstream is its ID.
	Upstream string
	// Reason is short and clean.
	Reason string
	// Scopes are what the server wants beyond what there is; may be empty.
	Scopes []string
	// Client: the credentials in the settings were refused; logging in does not help.
	Client bool
}

// Error returns the reason and what to do.
func (e *LoginError) Error() string {
	if e.Client {
		return e.Reason + ": check client_id and client_secret of upstream " + e.Upstream
	}
	words := []string{"sallyport auth login", e.Upstream}
	for _, scope := range e.Scopes {
		words = append(words, "--scope", scope)
	}
	return e.Reason + ": run `" + strings.Join(words, " ") + "`"
}

// NeedsLogin is how a session knows such an error without knowing this package.
func (e *LoginError) NeedsLogin() bool { return true }

// Remedy is what to do when the upstream refuses a token that it has just been given.
func (h *Handler) Remedy() string {
	if h.isMachine() {
		return "check client_id and client_secret of upstream " + h.settings.ID
	}
	return "a person has to run: sallyport auth login " + h.settings.ID
}

func (h *Handler) needLogin(reason string, scopes ...string) error {
	return &LoginError{Upstream: h.settings.ID, Reason: reason, Scopes: scopes}
}

// TokenSource returns where a request gets its token, refreshing it first if it
// has expired, or nil before a login: the request then goes without.
func (h *Handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	token, err := h.Token(ctx)
	if err != nil || token == "" {
		return nil, err
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token, TokenType: "Bearer"}), nil
}

// Token returns a token that has not expired, "" before a login.
func (h *Handler) Token(ctx context.Context) (string, error) {
	if h.isMachine() {
		return h.machineToken(ctx)
	}
	r, err := h.store.cached()
	if err != nil || r == nil {
		return "", err
	}
	if err := h.fits(r); err != nil {
		return "", nil //nolint:nilerr // the request goes without, and Authorize says why
	}
	if r.fresh(h.opts.Now()) {
		return r.Secret.Access, nil
	}
	r, err = h.refresh(ctx, "")
	if err != nil {
		return "", err
	}
	return r.Secret.Access, nil
}

// Secrets returns what must not be seen: the tokens in use or in the file, and the client's
// secret. It does not ask the keyring.
func (h *Handler) Secrets() []string {
	h.machine.mu.Lock()
	all := []string{h.settings.ClientSecret, h.machine.token}
	h.machine.mu.Unlock()
	h.store.mu.Lock()
	r := h.store.last
	h.store.mu.Unlock()
	if r == nil {
		r, _ = h.store.public() // an error is told to who needs a token
	}
	if r != nil {
		all = append(all, r.Secret.Access, r.Secret.Refresh, r.Secret.ClientSecret)
	}
	return all
}

func (h *Handler) isMachine() bool { return h.settings.Type == "client_credentials" }

// fits says whether a login was by the client that the settings name now.
func (h *Handler) fits(r *record) error {
	if h.settings.ClientID != "" && h.settings.ClientID != r.ClientID {
		return h.needLogin("the client_id in the settings is not that of the login")
	}
	return nil
}

// Authorize handles a refusal (401 or 403). It returns nil if the request
// should be sent once more, after a refresh of the token if that was refused;
// a [*LoginError] if a person is needed. It closes the response's body.
func (h *Handler) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	ask := challengeOf(resp)
	if resp.StatusCode == http.StatusForbidden && !ask.scope {
		return nil // no matter of tokens; the answer to the next try says what it is
	}
	used := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	var err error
	switch {
	case h.isMachine():
		return h.machineRefused(ctx, used, ask)
	case ask.scope:
		err = h.stepUp(used, ask)
	default:
		err = h.refused(ctx, used)
	}
	if e, ok := errors.AsType[*LoginError](err); ok && h.opts.Browse != nil {
		return h.login(ctx, ask, Login{Scopes: e.Scopes, Browse: h.opts.Browse})
	}
	return err
}

// refused: the token is not taken any more, or there was none.
func (h *Handler) refused(ctx context.Context, used string) error {
	r, err := h.store.read()
	if err != nil {
		return err
	}
	if r == nil {
		return h.needLogin("it wants a login")
	}
	if err := h.fits(r); err != nil {
		return err
	}
	if r.Secret.Access != used && r.fresh(h.opts.Now()) {
		return nil // somebody has a new one already
	}
	if used == "" {
		used = r.Secret.Access
	}
	_, err = h.refresh(ctx, used)
	return err
}

// stepUp: the token is good, but not for this.
func (h *Handler) stepUp(used string, ask challenge) error {
	r, err := h.store.read()
	if err != nil {
		return err
	}
	if r == nil {
		return h.needLogin("it wants a login", ask.scopes...)
	}
	more := without(ask.scopes, r.Scopes)
	switch {
	case r.Secret.Access != used:
		return nil
	case len(more) == 0:
		return fmt.Errorf("authorize: %s says that scopes are missing, but names none that the login does not have", h.settings.ID)
	}
	return h.needLogin("it wants more scopes than the login has", more...)
}

// challenge is what a refusal says.
type challenge struct {
	// scope: the token lacks scopes; scopes are those that are wanted.
	scope    bool
	scopes   []string
	metadata string
}

// maxChallenge bounds what is parsed of them, in bytes: the SDK takes seconds for a megabyte of commas.
const maxChallenge = 16 << 10

// challengeOf reads the Bearer challenges; what cannot be read is not there.
func challengeOf(resp *http.Response) challenge {
	var c challenge
	headers, size := resp.Header.Values("WWW-Authenticate"), 0
	for _, header := range headers {
		size += len(header)
	}
	if size > maxChallenge {
		return c
	}
	all, err := oauthex.ParseWWWAuthenticate(headers)
	if err != nil {
		return c
	}
	for _, one := range all {
		if one.Scheme != "bearer" {
			continue
		}
		if one.Params["error"] == "insufficient_scope" {
			c.scope = true
		}
		if c.scopes == nil {
			c.scopes = scopeTokens(strings.Fields(one.Params["scope"]))
		}
		if c.metadata == "" {
			c.metadata = one.Params["resource_metadata"]
		}
	}
	return c
}

// without returns what is in all and not in some.
func without(all, some []string) []string {
	has := map[string]bool{}
	for _, s := range some {
		has[s] = true
	}
	var rest []string
	for _, s := range all {
		if !has[s] {
			rest = append(rest, s)
			has[s] = true
		}
	}
	return rest
}

// scopeTokens keeps what a scope may be (RFC 6749, 3.3) and no shell or terminal
// minds, since scopes are printed as a command to run.
func scopeTokens(scopes []string) []string {
	var good []string
	for _, s := range scopes {
		if scopeForm.MatchString(s) && len(good) < 64 {
			good = append(good, s)
		}
	}
	return good
}
