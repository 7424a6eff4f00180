// Package oauth gets and stores access tokens for one upstream over HTTP: by the
// authorization code grant, which only a user starts, with `sallyport auth login`,
// and by client credentials. Its main type is [Handler], from which a session gets
// tokens and to which it reports refusals.
//
// The SDK does discovery, registration and the parsing of challenges (discover.go,
// login.go). This package adds persistent tokens (record.go, store.go), a refresh
// that happens once across goroutines and processes and sends the resource
// parameter (refresh.go), and logout (logout.go). Every URL that a server sends is
// checked in guard.go.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"sallyport/internal/tlsfiles"
)

// Settings configure the tokens of one upstream. Formatting them does not show
// the secret.
type Settings struct {
	// ID is that of the upstream, as in tool IDs; URL is its endpoint.
	ID, URL string
	// Socket is the path of the Unix socket that leads to URL; "" is none.
	Socket string
	// TLS are the upstream's files for TLS. Its authorities are also trusted for authorization servers, next to the system's; the
	// client certificate is only for the upstream itself.
	TLS tlsfiles.Files
	// Type is "" or "oauth" (authorization code) or "client_credentials". For
	// "none", and for an upstream with its own Authorization header, create no Handler.
	Type string
	// ClientID and ClientSecret are of a pre-registered client; "" registers one.
	ClientID, ClientSecret string
	// Issuer is the only authorization server that the client's secret is sent to; "" is the one that the upstream names.
	Issuer string
	// ClientMetadata is the URL of a client id metadata document.
	ClientMetadata string
	// Scopes are the scopes to request; empty requests those in the server's challenge or metadata.
	Scopes []string
	// RedirectPort is the loopback port of a login's redirect; 0 is any.
	RedirectPort int
	// Store is "auto" (Options.Records, else the keyring if there is one, else a file), "keyring" or "file"; "" is auto.
	Store string
	// Principal is the one who logs in, "" for a login that all share.
	Principal string
	// Exchange gets the principal's tokens without a login; nil does not.
	Exchange *Exchange
	// LoginPage is the address of the page where the principal logs in; "" is the command.
	LoginPage string
}

// String returns the upstream's ID without any secret.
func (s Settings) String() string { return fmt.Sprintf("oauth settings of %q", s.ID) }

// Format writes String for every verb.
func (s Settings) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns String.
func (s Settings) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Options configure a [Handler]. The zero value is usable.
type Options struct {
	// Dir holds the tokens; "" is [Dir] of the process's environment.
	Dir string
	// Records returns the logins that gateways share, nil for none. It is called when a login is needed; nil is none.
	Records func() (Records, error)
	// Logger gets what an operator should know, never a token; nil discards it.
	Logger *slog.Logger
	// Client is used for authorization servers; nil is one that connects to private
	// addresses only if the upstream has one too. Its CheckRedirect is replaced.
	Client *http.Client
	// Browse opens a page for a user. If set, Authorize logs in by itself instead of
	// returning a [LoginError]. `serve` leaves it nil; it is for programs that test
	// a client.
	Browse func(ctx context.Context, page string) error
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Handler gets and stores the tokens of one upstream. It is safe for concurrent
// use, and several processes may have one for the same upstream.
type Handler struct {
	settings Settings
	opts     Options
	log      *slog.Logger
	store    *store
	route
	exchange *exchanger // nil for none
	// tokenLock is a lock held while the token changes; a channel, so that a context can end the wait.
	tokenLock   chan struct{}
	credentials clientCredentials
}

var _ auth.OAuthHandler = (*Handler)(nil)

// New returns a Handler. It reads and sends nothing; the methods return errors
// for invalid settings. A nil opts means the zero Options.
func New(settings Settings, opts *Options) *Handler {
	h := &Handler{settings: settings, tokenLock: make(chan struct{}, 1)}
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
	h.web = h.guard.client(h.opts.Client, settings)
	h.exchange = newExchanger(h)
	h.store = &store{dir: h.opts.Dir, id: settings.ID, url: settings.URL, principal: settings.Principal, page: settings.LoginPage, kind: settings.Store, now: h.opts.Now, log: h.log}
	if settings.Store == "" || settings.Store == storeAuto {
		h.store.shared = h.opts.Records
	}
	return h
}

// LoginError reports that a user must act before the upstream can be used: log
// in, log in with more scopes, or correct the client's credentials.
type LoginError struct {
	// Upstream is its ID.
	Upstream string
	// Reason is short and clean.
	Reason string
	// Scopes are the missing scopes; may be empty.
	Scopes []string
	// Client reports that the credentials in the settings were refused; a login does not help.
	Client bool
	// Page is where the principal logs in, "" for the command.
	Page string
	// Exchange reports that the principal has no token to exchange; Reason says what to do.
	Exchange bool
}

// Error returns the reason and what to do.
func (e *LoginError) Error() string {
	if e.Exchange {
		return e.Reason
	}
	if e.Client {
		return e.Reason + ": check client_id and client_secret of upstream " + e.Upstream
	}
	if e.Page != "" {
		return e.Reason + ": open " + e.Page + scopeQuery(e.Scopes)
	}
	words := []string{"sallyport auth login", e.Upstream}
	for _, scope := range e.Scopes {
		words = append(words, "--scope", scope)
	}
	return e.Reason + ": run `" + strings.Join(words, " ") + "`"
}

// scopeQuery returns the query of a login page that requests scopes in addition.
func scopeQuery(scopes []string) string {
	if len(scopes) == 0 {
		return ""
	}
	return "?" + url.Values{"scope": scopes}.Encode()
}

// NeedsLogin lets a session recognize the error without importing this package.
func (e *LoginError) NeedsLogin() bool { return true }

// Remedy returns what to do when the upstream refuses a new token.
func (h *Handler) Remedy() string {
	if h.exchange != nil && h.exchange.Only() {
		return "it refuses a token that the identity provider gave in exchange: check auth.exchange of upstream " + h.settings.ID
	}
	if h.usesClientCredentials() {
		return "check client_id and client_secret of upstream " + h.settings.ID
	}
	if h.settings.LoginPage != "" {
		return "open " + h.settings.LoginPage
	}
	return "a person has to run: sallyport auth login " + h.settings.ID
}

func (h *Handler) needLogin(reason string, scopes ...string) error {
	return &LoginError{Upstream: h.settings.ID, Reason: reason, Scopes: scopes, Page: h.settings.LoginPage}
}

// TokenSource returns the source of a request's token, refreshing it first if it
// has expired, or nil before a login: the request is then sent without a token.
func (h *Handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	token, err := h.Token(ctx)
	if err != nil || token == "" {
		return nil, err
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token, TokenType: "Bearer"}), nil
}

// Token returns a token that has not expired, "" before a login.
func (h *Handler) Token(ctx context.Context) (string, error) {
	if h.usesClientCredentials() {
		return credentialsGrant{h}.token(ctx)
	}
	if h.exchange != nil {
		return h.exchange.token(ctx, "")
	}
	r, err := h.store.readCached()
	if err != nil {
		return "", err
	}
	return h.loginToken(ctx, r)
}

// loginToken returns the token of a login, "" for none.
func (h *Handler) loginToken(ctx context.Context, r *record) (string, error) {
	if r == nil {
		return "", nil
	}
	if err := h.checkClient(r); err != nil {
		return "", nil //nolint:nilerr // the request is sent without a token, and Authorize returns the error
	}
	if r.fresh(h.opts.Now()) {
		return r.Secret.Access, nil
	}
	r, err := h.refresh(ctx, "")
	if err != nil {
		return "", err
	}
	return r.Secret.Access, nil
}

// Secrets returns the values to redact: the tokens in use or in the file, and the client's
// secret. It does not read the keyring.
func (h *Handler) Secrets() []string {
	h.credentials.mu.Lock()
	all := []string{h.settings.ClientSecret, h.credentials.token}
	h.credentials.mu.Unlock()
	if h.exchange != nil {
		all = append(all, h.exchange.Secret())
	}
	h.store.mu.Lock()
	r := h.store.last
	h.store.mu.Unlock()
	if r == nil {
		r, _ = h.store.readPublic() // the error is returned when a token is needed
	}
	if r != nil {
		all = append(all, r.Secret.Access, r.Secret.Refresh, r.Secret.ClientSecret)
	}
	return all
}

// clientCredentialsType is the type of settings for the client credentials grant.
const clientCredentialsType = "client_credentials"

func (h *Handler) usesClientCredentials() bool { return h.settings.Type == clientCredentialsType }

// checkClient returns an error if a login was by another client than that of the settings.
func (h *Handler) checkClient(r *record) error {
	if r.Terms != "" {
		return h.needLogin("login required")
	}
	if h.settings.ClientID != "" && h.settings.ClientID != r.ClientID {
		return h.needLogin("the client_id in the settings is not that of the login")
	}
	return nil
}

// Authorize handles a refusal (401 or 403). It returns nil if the request should
// be retried, after a refresh if the token was refused; a [*LoginError] if a user
// must act. It closes the response's body.
func (h *Handler) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	ask := parseChallenge(resp)
	if resp.StatusCode == http.StatusForbidden && !ask.scope {
		return nil // not about tokens; the retry returns the error
	}
	used := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	switch {
	case h.usesClientCredentials():
		return credentialsGrant{h}.renew(ctx, used, ask)
	case h.exchange != nil:
		return h.exchange.refused(ctx, used, ask)
	}
	err := h.loginRefused(ctx, used, ask)
	if e, ok := errors.AsType[*LoginError](err); ok && h.opts.Browse != nil {
		return h.login(ctx, ask, Login{Scopes: e.Scopes, Browse: h.opts.Browse})
	}
	return err
}

// loginRefused handles a refusal of the token of a login, or of a request without one.
func (h *Handler) loginRefused(ctx context.Context, used string, ask challenge) error {
	if ask.scope {
		return h.stepUp(used, ask)
	}
	return h.refreshRefused(ctx, used)
}

// refreshRefused handles a refused or missing token.
func (h *Handler) refreshRefused(ctx context.Context, used string) error {
	r, err := h.store.read()
	if err != nil {
		return err
	}
	if r == nil {
		return h.needLogin("login required")
	}
	if err := h.checkClient(r); err != nil {
		return err
	}
	if r.Secret.Access != used && r.fresh(h.opts.Now()) {
		return nil // another request or process has a new one already
	}
	if used == "" {
		used = r.Secret.Access
	}
	_, err = h.refresh(ctx, used)
	return err
}

// stepUp handles a valid token that lacks scopes.
func (h *Handler) stepUp(used string, ask challenge) error {
	r, err := h.store.read()
	if err != nil {
		return err
	}
	if r == nil {
		return h.needLogin("login required", ask.scopes...)
	}
	more := subtract(ask.scopes, r.Scopes)
	switch {
	case r.Secret.Access != used:
		return nil
	case len(more) == 0:
		return fmt.Errorf("authorize: %s says that scopes are missing, but names none that the login does not have", h.settings.ID)
	}
	return h.needLogin("the login lacks scopes", more...)
}

// challenge is the content of a refusal's WWW-Authenticate headers.
type challenge struct {
	// scope reports that the token lacks scopes; scopes are the required ones.
	scope    bool
	scopes   []string
	metadata string
}

// maxChallenge is the largest size of the headers that are parsed, in bytes: the SDK takes seconds for a megabyte of commas.
const maxChallenge = 16 << 10

// parseChallenge parses the Bearer challenges; it ignores invalid ones.
func parseChallenge(resp *http.Response) challenge {
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
			c.scopes = validScopes(strings.Fields(one.Params["scope"]))
		}
		if c.metadata == "" {
			c.metadata = one.Params["resource_metadata"]
		}
	}
	return c
}

// subtract returns the distinct elements of all that are not in some.
func subtract(all, some []string) []string {
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

// validScopes returns the valid scopes (RFC 6749, 3.3) that are safe in a shell and a
// terminal, since scopes are printed in a command to run; at most 64.
func validScopes(scopes []string) []string {
	var good []string
	for _, s := range scopes {
		if scopePattern.MatchString(s) && len(good) < 64 {
			good = append(good, s)
		}
	}
	return good
}
