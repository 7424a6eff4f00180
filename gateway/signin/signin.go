// Package signin lets people sign in at an OpenID provider, by the authorization code flow with PKCE, state and nonce. Its main
// type is [Provider]: [Provider.Begin] begins a sign-in in a browser, [Provider.Finish] verifies the ID token that it ends with, and
// the result reads the claims again as long as the session lasts.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	discovery "github.com/zitadel/oidc/v3/pkg/client"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"

	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/seal"
	"sallyport/internal/weburl"
)

// CallbackPath is the path of the redirect URI.
const CallbackPath = "/login/callback"

// Leeway is the accepted clock difference to the provider.
const Leeway = 10 * time.Second

// Algorithms returns the accepted signature algorithms: no symmetric ones, and not "none".
func Algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// Claims are the claims of a verified token.
type Claims struct {
	// All are the claims, decoded by [sallyport/internal/expr.Decode].
	All map[string]any
	// Scopes are those of an access token.
	Scopes []string
	// Issued is when the token was issued; zero if unknown. Expires is when it expires; zero for an ID token.
	Issued, Expires time.Time
	// Tokens are the verified token, and the access token that came with an ID token.
	Tokens []access.Subject
}

// Options configure a [Provider].
type Options struct {
	Settings config.Login
	// Site is the address of the gateway's pages, without a path.
	Site string
	// Caller returns the caller with verified claims.
	Caller func(ctx context.Context, claims Claims) (access.Caller, error)
	// Subjects forgets the tokens of a person when the session ends; nil has none.
	Subjects *access.Subjects
	// Key seals sign-ins that have begun, so that other gateways with it can finish them; nil: only this process can.
	Key *seal.Key
}

// Provider is an OpenID provider. It is safe for concurrent use.
type Provider struct {
	opts Options
	web  *http.Client
	seal sealer

	mu    sync.Mutex
	found *endpoints // nil until its metadata has been read
}

// endpoints is the provider's metadata.
type endpoints struct {
	oauth2.Config
	keys       oidc.KeySet
	revocation string
	userinfo   string
	// signOut is the page on which a person ends the session at the provider, "" if there is none.
	signOut string
}

// New returns a provider. Its metadata is read when it is needed first, so that the gateway starts even if the provider is down.
func New(opts Options) (*Provider, error) {
	seal, err := newSealer(opts.Key)
	if err != nil {
		return nil, err
	}
	return &Provider{opts: opts, seal: seal, web: newClient()}, nil
}

// Site returns the address of the pages; its callback is registered at the provider.
func (p *Provider) Site() string { return p.opts.Site }

// Begin begins a sign-in. It returns the page of the provider, and a value that the browser must have in [Provider.Finish].
func (p *Provider) Begin(ctx context.Context, next string) (page, kept string, err error) {
	at, err := p.endpoints(ctx)
	if err != nil {
		return "", "", err
	}
	a := attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: next, Ends: time.Now().Add(AttemptLife)}
	if kept, err = p.seal.seal(a); err != nil {
		return "", "", err
	}
	return at.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oauth2.SetAuthURLParam("nonce", a.Nonce)), kept, nil
}

// ErrForeign reports a callback for a sign-in that this browser has not begun, or that has expired.
var ErrForeign = errors.New("this sign-in was not begun in this browser, or took longer than 10 minutes")

// RefusedError is the error that the provider sent in place of a code.
type RefusedError struct{ Code string }

// Error implements error.
func (e *RefusedError) Error() string { return "the provider refused the sign-in: " + e.Code }

// Finish ends a sign-in with the parameters of the redirect and the value of [Provider.Begin]. It returns the caller, the
// renewal of its session, and next.
func (p *Provider) Finish(ctx context.Context, kept string, got url.Values) (v access.Caller, renewal *access.Renewal, next string, err error) {
	a, ok := p.seal.open(kept)
	if !ok || subtle.ConstantTimeCompare([]byte(a.State), []byte(got.Get("state"))) != 1 {
		return v, nil, "", ErrForeign
	}
	at, err := p.endpoints(ctx)
	if err != nil {
		return v, nil, "", err
	}
	if iss := got.Get("iss"); iss != "" && iss != p.opts.Settings.Issuer {
		return v, nil, "", errors.New("the redirect is of another issuer")
	}
	if code := got.Get("error"); code != "" {
		return v, nil, "", &RefusedError{sanitize.Line(code, 60)}
	}
	token, err := at.Exchange(p.context(ctx), got.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return v, nil, "", fmt.Errorf("redeem code: %w", tokenError(err))
	}
	s := &session{provider: p, state: state{Nonce: a.Nonce}}
	if v, err = s.adopt(ctx, at, token, a.Nonce); err != nil {
		return v, nil, "", err
	}
	data, err := json.Marshal(s.state)
	if err != nil {
		return v, nil, "", fmt.Errorf("keep session: %w", err)
	}
	return v, &access.Renewal{Every: p.opts.Settings.Refresh, State: data, Provider: p}, a.Next, nil
}

// context returns ctx with the HTTP client for the provider.
func (p *Provider) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, p.web)
}

// endpoints returns the provider's metadata.
func (p *Provider) endpoints(ctx context.Context) (*endpoints, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	known, err := discovery.Discover(ctx, p.opts.Settings.Issuer, p.web)
	if err != nil {
		return nil, fmt.Errorf("read metadata of the provider: %w", err)
	}
	for name, address := range map[string]string{"authorization_endpoint": known.AuthorizationEndpoint, "token_endpoint": known.TokenEndpoint, "jwks_uri": known.JwksURI} {
		if !weburl.IsSecure(address) {
			return nil, fmt.Errorf("read metadata of the provider: its %s is no https:// URL", name)
		}
	}
	s := p.opts.Settings
	at := &endpoints{keys: rp.NewRemoteKeySet(p.web, known.JwksURI), Config: oauth2.Config{
		ClientID: s.ClientID, ClientSecret: string(s.ClientSecret), Scopes: s.Scopes, RedirectURL: p.opts.Site + CallbackPath,
		Endpoint: oauth2.Endpoint{AuthURL: known.AuthorizationEndpoint, TokenURL: known.TokenEndpoint, AuthStyle: authStyle(s, known)},
	}}
	if weburl.IsSecure(known.RevocationEndpoint) {
		at.revocation = known.RevocationEndpoint
	}
	if at.userinfo = known.UserinfoEndpoint; s.Userinfo && !weburl.IsSecure(at.userinfo) {
		return nil, errors.New("read metadata of the provider: its userinfo_endpoint is no https:// URL: set userinfo to false in http.login")
	}
	at.signOut = signOutPage(known.EndSessionEndpoint, s.ClientID)
	p.found = at
	return at, nil
}

// signOutPage returns the provider's page for the end of a session, where the person confirms it since no ID token is sent
// along (OpenID Connect RP-Initiated Logout 1.0, section 2).
func signOutPage(endpoint, client string) string {
	page, err := url.Parse(endpoint)
	if err != nil || !weburl.IsSecure(endpoint) {
		return ""
	}
	query := page.Query()
	query.Set("client_id", client)
	page.RawQuery = query.Encode()
	return page.String()
}

// SignOutPage returns the page of the provider on which a person ends the session there, "" if the provider has none.
func (p *Provider) SignOutPage(ctx context.Context) string {
	at, err := p.endpoints(ctx)
	if err != nil {
		return ""
	}
	return at.signOut
}

// authStyle returns how the client authenticates: in the header, unless the provider takes only the body.
func authStyle(s config.Login, known *oidc.DiscoveryConfiguration) oauth2.AuthStyle {
	if s.ClientSecret == "" {
		return oauth2.AuthStyleInParams
	}
	post := false
	for _, method := range known.TokenEndpointAuthMethodsSupported {
		if method == oidc.AuthMethodBasic {
			return oauth2.AuthStyleInHeader
		}
		post = post || method == oidc.AuthMethodPost
	}
	if post {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// tokenError returns an error of the token endpoint without the response, which may have secrets.
func tokenError(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("the provider answered %d %s", answer.Response.StatusCode, sanitize.Line(strings.TrimSpace(answer.ErrorCode), 60))
	}
	return err
}
