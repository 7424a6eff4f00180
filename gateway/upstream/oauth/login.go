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

// Login says how a person is reached for a login.
type Login struct {
	// Scopes are requested in addition to those of the settings or of the server.
	Scopes []string
	// Show is given the page to open, before Browse; nil shows nothing.
	Show func(page string)
	// Browse opens the page; nil leaves that to the user. Its error is
	// not fatal if there is a Show. It is called in a goroutine of its own.
	Browse func(ctx context.Context, page string) error
	// Paste, if not nil, takes the place of the listener: the first line of it is the
	// URL that the browser ended at, from a machine that has the browser.
	Paste io.Reader
}

// Login logs in by the authorization code grant with PKCE and keeps the tokens.
// It waits for the person until ctx ends. Nothing that was stored changes unless
// it succeeds, but for the registration of a client.
func (h *Handler) Login(ctx context.Context, how Login) error {
	if h.isMachine() {
		return fmt.Errorf("log in to %s: its tokens come by client credentials, without a login", h.settings.ID)
	}
	ask, err := h.probe(ctx)
	if err != nil {
		return fmt.Errorf("log in to %s: %w", h.settings.ID, err)
	}
	ask.scope = false
	return h.login(ctx, ask, how)
}

func (h *Handler) login(ctx context.Context, ask challenge, how Login) error {
	if err := h.tryLogin(ctx, ask, how); err != nil {
		return fmt.Errorf("log in to %s: %w", h.settings.ID, err)
	}
	return nil
}

func (h *Handler) tryLogin(ctx context.Context, ask challenge, how Login) error {
	found, err := h.discover(ctx, ask)
	if err != nil {
		return err
	}
	old, err := h.store.read()
	if err != nil || old != nil && (old.Issuer != found.meta.Issuer || old.Resource != found.resource) {
		old = nil // what one server gave is nothing to another
	}
	back, err := h.open(how, old)
	if err != nil {
		return err
	}
	defer back.close()
	who, err := h.register(ctx, found, old, back.redirect)
	if err != nil {
		return err
	}
	scopes := h.scopes(found, old, how)
	token, err := h.askPerson(ctx, found, who, scopes, back, how)
	if err != nil {
		return err
	}
	return h.storeLogin(ctx, found, who, scopes, back.redirect, token)
}

// registered is a client of one authorization server.
type registered struct {
	client
	// dynamic: it was registered by us, so its secret is kept with the tokens.
	dynamic bool
}

// register finds out who we are to the server: the document of the settings, the
// client of the settings, the one that was registered before, or a new one.
func (h *Handler) register(ctx context.Context, found *issuer, old *record, redirect string) (registered, error) {
	m, s := found.meta, h.settings
	who := registered{client: client{tokenURL: m.TokenEndpoint, basic: prefersBasic(m.TokenEndpointAuthMethodsSupported)}}
	switch {
	case s.ClientMetadata != "" && m.ClientIDMetadataDocumentSupported:
		who.id = s.ClientMetadata
		return who, nil
	case s.ClientID != "":
		who.id, who.secret = s.ClientID, s.ClientSecret
		return who, nil
	case old != nil && old.Registered && old.Redirect == redirect && !strings.Contains(old.Ended, "no longer knows the client"):
		return registered{client{old.ClientID, old.Secret.ClientSecret, m.TokenEndpoint, old.Basic}, true}, nil
	case m.RegistrationEndpoint == "":
		return who, fmt.Errorf("the authorization server %s registers no clients by itself: register one there with the redirect %s and set auth.client_id",
			sanitize.Line(m.Issuer, 200), redirect)
	}
	return h.registerNew(ctx, found, redirect, who)
}

func (h *Handler) registerNew(ctx context.Context, found *issuer, redirect string, who registered) (registered, error) {
	got, err := oauthex.RegisterClient(ctx, found.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, ClientName: "Sallyport", ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: authMethod(found.meta.TokenEndpointAuthMethodsSupported),
	}, h.client)
	if err != nil {
		return who, fmt.Errorf("the authorization server refuses to register a client (%s): register one there with the redirect %s and set auth.client_id",
			sanitize.Line(reason(err).Error(), 200), redirect)
	}
	who.id, who.secret, who.dynamic = got.ClientID, got.ClientSecret, true
	who.basic = got.TokenEndpointAuthMethod == "client_secret_basic" || got.TokenEndpointAuthMethod == ""
	return who, nil
}

// prefersBasic: the header is what every server must know (RFC 6749, 2.3.1).
func prefersBasic(methods []string) bool {
	return slices.Contains(methods, "client_secret_basic") || !slices.Contains(methods, "client_secret_post")
}

// authMethod is what to register: none, if the server lets a program on a
// person's machine be what it is.
func authMethod(methods []string) string {
	for _, method := range []string{"none", "client_secret_basic", "client_secret_post"} {
		if slices.Contains(methods, method) {
			return method
		}
	}
	return "none"
}

// scopes are those of the settings or of the server, those that the login had
// already when more are wanted, and offline_access where that is how a refresh
// token is asked for.
func (h *Handler) scopes(found *issuer, old *record, how Login) []string {
	scopes := slices.Clone(h.settings.Scopes)
	if len(scopes) == 0 {
		scopes = slices.Clone(found.scopes)
	}
	if old != nil && len(how.Scopes) > 0 {
		scopes = append(scopes, old.Scopes...)
	}
	scopes = append(scopes, how.Scopes...)
	if slices.Contains(found.meta.ScopesSupported, "offline_access") {
		scopes = append(scopes, "offline_access")
	}
	return without(scopes, nil)
}

// askPerson sends the person to the server and turns the answer into tokens.
func (h *Handler) askPerson(ctx context.Context, found *issuer, who registered, scopes []string, back *listener, how Login) (*oauth2.Token, error) {
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	cfg := oauth2.Config{
		ClientID: who.id, RedirectURL: back.redirect, Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: found.meta.AuthorizationEndpoint},
	}
	page := cfg.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", found.resource))
	got, err := back.wait(ctx, page, how)
	if err != nil {
		return nil, err
	}
	code, err := readAnswer(got, state, found)
	if err != nil {
		return nil, err
	}
	return h.grant(ctx, who.client, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back.redirect},
		"code_verifier": {verifier}, "resource": {found.resource},
	})
}

// readAnswer takes the code out of an answer that is to our question, and from
// the server that we asked (RFC 9207).
func readAnswer(got url.Values, state string, found *issuer) (string, error) {
	if subtle.ConstantTimeCompare([]byte(got.Get("state")), []byte(state)) != 1 {
		return "", errors.New("the answer is not to this login (state mismatch); try again")
	}
	iss, supported := got.Get("iss"), found.meta.AuthorizationResponseIssParameterSupported
	switch {
	case supported && iss == "":
		return "", errors.New("the answer does not say which authorization server it is from, though the server says that it would")
	case iss != "" && iss != found.meta.Issuer:
		return "", fmt.Errorf("the answer is from another authorization server: %s", sanitize.Line(iss, 200))
	case iss != "" && !supported:
		return "", errors.New("the answer says which authorization server it is from, though the server says that it would not")
	}
	if code := got.Get("error"); code != "" {
		text := sanitize.Line(code, 60)
		if more := got.Get("error_description"); more != "" {
			text += ": " + sanitize.Line(more, 200)
		}
		return "", fmt.Errorf("the authorization server refuses: %s", text)
	}
	if got.Get("code") == "" {
		return "", errors.New("the answer has no code")
	}
	return got.Get("code"), nil
}

// storeLogin replaces what is stored, when no refresh is under way.
func (h *Handler) storeLogin(ctx context.Context, found *issuer, who registered, scopes []string, redirect string, token *oauth2.Token) error {
	r := &record{
		Resource: found.resource, Issuer: found.meta.Issuer, Scopes: scopes, Since: h.opts.Now(),
		TokenURL: found.meta.TokenEndpoint, RevokeURL: found.meta.RevocationEndpoint,
		ClientID: who.id, Registered: who.dynamic, Redirect: redirect, Basic: who.basic,
	}
	if who.dynamic {
		r.Secret.ClientSecret = who.secret
	}
	h.keep(r, token)
	release, err := h.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	return h.store.write(r)
}
