package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"sallyport/internal/sanitize"
)

// Login configures the interaction with the user during a login.
type Login struct {
	// Scopes are requested in addition to those of the settings or of the server.
	Scopes []string
	// Show is called with the page to open, before Browse; nil shows nothing.
	Show func(page string)
	// Browse opens the page; nil leaves that to the user. Its error is ignored
	// if Show is set. It is called in its own goroutine.
	Browse func(ctx context.Context, page string) error
	// Paste, if not nil, replaces the listener: its first line is the redirect URL
	// of a browser on another machine.
	Paste io.Reader
}

// Login logs in by the authorization code grant with PKCE and stores the tokens.
// It waits for the user until ctx ends. The stored login changes only if it
// succeeds.
func (h *Handler) Login(ctx context.Context, how Login) error {
	if err := h.settings.mayLogIn(); err != nil {
		return err
	}
	ask, err := h.probe(ctx)
	if err != nil {
		return fmt.Errorf("log in to %s: %w", h.settings.ID, err)
	}
	ask.scope = false
	return h.login(ctx, ask, how)
}

// mayLogIn returns an error if there is no login for these settings.
func (s Settings) mayLogIn() error {
	switch {
	case s.Type == clientCredentialsType:
		return fmt.Errorf("log in to %s: it uses client credentials and needs no login", s.ID)
	case s.Exchange != nil && s.Exchange.Only():
		return fmt.Errorf("log in to %s: it needs no login, as the gateway exchanges the token of each caller from %s", s.ID, sanitize.Line(s.Exchange.Issuer, 200))
	}
	return nil
}

func (h *Handler) login(ctx context.Context, ask challenge, how Login) error {
	if err := h.tryLogin(ctx, ask, how); err != nil {
		return fmt.Errorf("log in to %s: %w", h.settings.ID, err)
	}
	return nil
}

func (h *Handler) tryLogin(ctx context.Context, ask challenge, how Login) error {
	found, old, err := prepare(ctx, h, ask)
	if err != nil {
		return err
	}
	back, err := h.listen(how, old)
	if err != nil {
		return err
	}
	defer back.close()
	a, err := newAuthorization(ctx, h, found, old, back.redirect, how.Scopes)
	if err != nil {
		return err
	}
	got, err := back.wait(ctx, a.Page, how)
	if err != nil {
		return err
	}
	return a.finish(ctx, got)
}

// prepare returns the authorization server of the upstream, and the earlier login there, nil for none.
func prepare(ctx context.Context, h *Handler, ask challenge) (*issuer, *record, error) {
	found, err := h.discover(ctx, ask)
	if err != nil {
		return nil, nil, err
	}
	old, err := h.store.read()
	if err != nil || old != nil && (old.Issuer != found.meta.Issuer || old.Resource != found.resource) {
		old = nil // a login at another server
	}
	return found, old, nil
}

// Authorization is a login that has begun: its user opens Page, and the browser is redirected back with parameters for
// Finish.
type Authorization struct {
	// Page is a page of the authorization server, State the state parameter of the redirect back.
	Page, State string

	handler  *Handler
	found    *issuer
	who      clientRegistration
	scopes   []string
	verifier string
	redirect string
}

// Begin begins a login by the authorization code grant with PKCE, which ends at a redirect URL of the caller, and requests
// scopes in addition to those of the settings or of the server. It stores nothing.
func (h *Handler) Begin(ctx context.Context, redirect string, scopes []string) (*Authorization, error) {
	if err := h.settings.mayLogIn(); err != nil {
		return nil, err
	}
	ask, err := h.probe(ctx)
	if err != nil {
		return nil, fmt.Errorf("log in to %s: %w", h.settings.ID, err)
	}
	found, old, err := prepare(ctx, h, ask)
	if err != nil {
		return nil, fmt.Errorf("log in to %s: %w", h.settings.ID, err)
	}
	a, err := newAuthorization(ctx, h, found, old, redirect, validScopes(scopes))
	if err != nil {
		return nil, fmt.Errorf("log in to %s: %w", h.settings.ID, err)
	}
	return a, nil
}

// newAuthorization registers a client if necessary.
func newAuthorization(ctx context.Context, h *Handler, found *issuer, old *record, redirect string, more []string) (*Authorization, error) {
	extends := len(more) > 0 && old != nil && old.usable(h.opts.Now())
	who, err := h.register(ctx, found, old, redirect, extends)
	if err != nil {
		return nil, err
	}
	a := &Authorization{
		State: rand.Text(), handler: h, found: found, who: who, scopes: h.scopes(found, old, more), verifier: oauth2.GenerateVerifier(), redirect: redirect,
	}
	a.Page = a.page()
	return a, nil
}

// page returns the URL of the page where the user logs in.
func (a *Authorization) page() string {
	cfg := oauth2.Config{
		ClientID: a.who.id, RedirectURL: a.redirect, Scopes: a.scopes, Endpoint: oauth2.Endpoint{AuthURL: a.found.meta.AuthorizationEndpoint},
	}
	return cfg.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.verifier), oauth2.SetAuthURLParam("resource", a.found.resource))
}

// Finish ends the login with the parameters of the redirect, and stores the tokens. Call it once.
func (a *Authorization) Finish(ctx context.Context, got url.Values) error {
	if err := a.finish(ctx, got); err != nil {
		return fmt.Errorf("log in to %s: %w", a.handler.settings.ID, err)
	}
	return nil
}

func (a *Authorization) finish(ctx context.Context, got url.Values) error {
	code, err := readCallback(got, a.State, a.found)
	if err != nil {
		return err
	}
	token, err := a.handler.grant(ctx, a.who.client, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.redirect},
		"code_verifier": {a.verifier}, "resource": {a.found.resource},
	})
	if err != nil {
		return err
	}
	return a.handler.storeLogin(ctx, a.found, a.who, a.scopes, a.redirect, token)
}

// clientRegistration is a client of one authorization server.
type clientRegistration struct {
	client
	// dynamic reports that we registered it, so its secret is stored with the tokens.
	dynamic bool
}

// register returns the client to use: the metadata document of the settings, the
// client of the settings, the one that was registered before, or a new one. A login that extends a valid one does not ask whether
// its client is known.
func (h *Handler) register(ctx context.Context, found *issuer, old *record, redirect string, extends bool) (clientRegistration, error) {
	m, s := found.meta, h.settings
	who := clientRegistration{client: client{tokenURL: m.TokenEndpoint, basic: prefersBasic(m.TokenEndpointAuthMethodsSupported)}}
	switch {
	case s.ClientMetadata != "" && m.ClientIDMetadataDocumentSupported:
		who.id = s.ClientMetadata
		return who, nil
	case s.ClientID != "":
		who.id, who.secret = s.ClientID, s.ClientSecret
		return who, nil
	case old != nil && old.Registered && old.Redirect == redirect && (extends || registration{h, found, old}.isKnown(ctx)):
		return clientRegistration{client{old.ClientID, old.Secret.ClientSecret, m.TokenEndpoint, old.Basic}, true}, nil
	case m.RegistrationEndpoint == "":
		return who, fmt.Errorf("the authorization server %s does not register clients: register one there with the redirect %s and set auth.client_id",
			sanitize.Line(m.Issuer, 200), redirect)
	}
	return h.registerNew(ctx, found, redirect, who)
}

func (h *Handler) registerNew(ctx context.Context, found *issuer, redirect string, who clientRegistration) (clientRegistration, error) {
	got, err := oauthex.RegisterClient(ctx, found.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, ClientName: "Sallyport", ApplicationType: applicationType(redirect),
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: authMethod(found.meta.TokenEndpointAuthMethodsSupported),
	}, h.web)
	if err != nil {
		return who, fmt.Errorf("the authorization server refuses to register a client (%s): register one there with the redirect %s and set auth.client_id",
			sanitize.Line(withoutURL(err).Error(), 200), redirect)
	}
	who.id, who.secret, who.dynamic = got.ClientID, got.ClientSecret, true
	who.basic = got.TokenEndpointAuthMethod == "client_secret_basic" || got.TokenEndpointAuthMethod == ""
	return who, nil
}

// applicationType returns the type of a client with that redirect URL (OpenID Connect Registration, section 2).
func applicationType(redirect string) string {
	if strings.HasPrefix(redirect, "https://") {
		return "web"
	}
	return "native"
}

// prefersBasic reports whether to send the secret in a header, which every server must support (RFC 6749, 2.3.1).
func prefersBasic(methods []string) bool {
	return slices.Contains(methods, "client_secret_basic") || !slices.Contains(methods, "client_secret_post")
}

// authMethod returns the authentication method to register: none, as for a public
// client, if the server supports it.
func authMethod(methods []string) string {
	for _, method := range []string{"none", "client_secret_basic", "client_secret_post"} {
		if slices.Contains(methods, method) {
			return method
		}
	}
	return "none"
}

// scopes returns those of the settings or of the server, those of the old login when
// more are required, and offline_access where the server supports it for a refresh
// token.
func (h *Handler) scopes(found *issuer, old *record, more []string) []string {
	scopes := slices.Clone(h.settings.Scopes)
	if len(scopes) == 0 {
		scopes = slices.Clone(found.scopes)
	}
	if old != nil && len(more) > 0 {
		scopes = append(scopes, old.Scopes...)
	}
	scopes = append(scopes, more...)
	if slices.Contains(found.meta.ScopesSupported, "offline_access") {
		scopes = append(scopes, "offline_access")
	}
	return subtract(scopes, nil)
}

// readCallback returns the code of a redirect, after checking its state and issuer
// (RFC 9207).
func readCallback(got url.Values, state string, found *issuer) (string, error) {
	if subtle.ConstantTimeCompare([]byte(got.Get("state")), []byte(state)) != 1 {
		return "", errors.New("the response is not for this login (state mismatch); try again")
	}
	iss, supported := got.Get("iss"), found.meta.AuthorizationResponseIssParameterSupported
	switch {
	case supported && iss == "":
		return "", errors.New("the response lacks the iss parameter that the server metadata declares")
	case iss != "" && iss != found.meta.Issuer:
		return "", fmt.Errorf("the response is from another authorization server: %s", sanitize.Line(iss, 200))
	case iss != "" && !supported:
		return "", errors.New("the response has an iss parameter, which the server metadata does not declare")
	}
	if code := got.Get("error"); code != "" {
		text := sanitize.Line(code, 60)
		if more := got.Get("error_description"); more != "" {
			text += ": " + sanitize.Line(more, 200)
		}
		return "", fmt.Errorf("the authorization server refuses: %s", text)
	}
	if got.Get("code") == "" {
		return "", errors.New("the response has no code")
	}
	return got.Get("code"), nil
}

// storeLogin replaces the stored login, while no refresh is in progress.
func (h *Handler) storeLogin(ctx context.Context, found *issuer, who clientRegistration, scopes []string, redirect string, token *oauth2.Token) error {
	r := &record{
		Resource: found.resource, Issuer: found.meta.Issuer, Scopes: scopes, Since: h.opts.Now(),
		TokenURL: found.meta.TokenEndpoint, RevokeURL: found.meta.RevocationEndpoint,
		ClientID: who.id, Registered: who.dynamic, Redirect: redirect, Basic: who.basic,
	}
	if who.dynamic {
		r.Secret.ClientSecret = who.secret
	}
	h.updateRecord(r, token)
	release, err := h.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return h.store.write(r)
}
