package mcpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	discovery "github.com/zitadel/oidc/v3/pkg/client"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/time/rate"

	"sallyport/internal/config"
	"sallyport/internal/plain"
)

// metadataPath is where the metadata of a protected resource is (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource"

// bearer asks every request for a token: one of the settings, or an access
// token of the issuer that is meant for us. Neither goes anywhere from here.
type bearer struct {
	tokens map[string][sha256.Size]byte // digests, by the token's name
	issuer *issuer                      // nil: none
	log    *slog.Logger
	logins *logins
}

// newBearer returns nil where the settings ask for no token.
func newBearer(settings config.HTTP, log *slog.Logger, logins *logins) *bearer {
	if len(settings.Tokens) == 0 && settings.OAuth == nil {
		return nil
	}
	b := &bearer{tokens: map[string][sha256.Size]byte{}, log: log, logins: logins}
	for name, token := range settings.Tokens {
		b.tokens[name] = sha256.Sum256([]byte(token))
	}
	if settings.OAuth != nil {
		b.issuer = newIssuer(*settings.OAuth)
	}
	return b
}

// around lets requests through that bring a good token; who it belongs to is
// in their context, for the SDK too, which binds sessions to it.
func (b *bearer) around(next http.Handler) http.Handler {
	opts := &auth.RequireBearerTokenOptions{}
	if b.issuer != nil {
		opts.ResourceMetadataURL, opts.Scopes = b.issuer.metadataURL(), b.issuer.Scopes
		return auth.RequireBearerToken(b.verify, opts)(next)
	}
	inner := auth.RequireBearerToken(b.verify, opts)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Del("WWW-Authenticate")
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer") // a refusal must say what is wanted; the SDK says it only with metadata
		inner.ServeHTTP(w, r)
	})
}

func (b *bearer) verify(ctx context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
	if name := b.named(token); name != "" {
		info := &auth.TokenInfo{UserID: "token:" + name, Expiration: time.Now().Add(time.Hour)} // it has none: it is good for this request
		if b.issuer != nil {
			info.Scopes = b.issuer.Scopes // scopes are for access tokens
		}
		b.logins.in(ctx, info.UserID, r)
		return info, nil
	}
	err := errors.New("unknown token")
	if b.issuer != nil {
		var info *auth.TokenInfo
		if info, err = b.issuer.verify(ctx, token); err == nil {
			b.logins.in(ctx, info.UserID, r)
			return info, nil
		}
	}
	b.logins.refused(ctx, r)
	b.log.WarnContext(ctx, "token refused", "remote", r.RemoteAddr, "reason", plain.Line(err.Error(), 200))
	return nil, auth.ErrInvalidToken // the reason is for the log, not for whoever is guessing
}

// named returns the name of a token of the settings, "" if it is none. It takes
// as long for every token, right or wrong.
func (b *bearer) named(token string) string {
	digest := sha256.Sum256([]byte(token))
	found := ""
	for name, want := range b.tokens {
		if subtle.ConstantTimeCompare(digest[:], want[:]) == 1 {
			found = name
		}
	}
	return found
}

// issuer checks the access tokens (JWT, RFC 9068) of one authorization server.
type issuer struct {
	config.ResourceServer
	web *http.Client

	mu   sync.Mutex
	keys oidc.KeySet // nil until its metadata has been read
}

func newIssuer(settings config.ResourceServer) *issuer {
	return &issuer{ResourceServer: settings, web: &http.Client{
		Timeout: 10 * time.Second, Transport: &slowly{rate.NewLimiter(rate.Every(2*time.Second), 10)},
	}}
}

// algorithms are those that an access token may be signed with: no secret that
// is shared, and never "none".
func algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// leeway is how far the issuer's clock may be from ours.
const leeway = 30 * time.Second

// verify returns whose the token is, if it is good: of the issuer, signed by
// it, for us, and valid now. Scopes are left to the caller.
func (i *issuer) verify(ctx context.Context, token string) (*auth.TokenInfo, error) {
	claims := new(oidc.AccessTokenClaims)
	payload, err := oidc.ParseToken(token, claims)
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	if err := errors.Join(oidc.CheckIssuer(claims, i.Issuer), oidc.CheckAudience(claims, i.Audience), oidc.CheckSubject(claims)); err != nil {
		return nil, err
	}
	keys, err := i.keySet(ctx)
	if err != nil {
		return nil, err
	}
	if err := oidc.CheckSignature(ctx, token, payload, claims, algorithms(), keys); err != nil {
		return nil, err
	}
	expiry := claims.GetExpiration()
	if err := oidc.CheckExpiration(claims, -leeway); err != nil {
		return nil, err
	}
	if begin := claims.NotBefore.AsTime(); !begin.IsZero() && time.Now().Add(leeway).Before(begin) {
		return nil, errors.New("the token is not valid yet")
	}
	return &auth.TokenInfo{UserID: "oauth:" + claims.Subject, Scopes: claims.Scopes, Expiration: expiry.Add(leeway)}, nil
}

// keySet finds the issuer's keys, when the first token comes that needs them:
// the gateway starts also while the issuer is down.
func (i *issuer) keySet(ctx context.Context) (oidc.KeySet, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != nil {
		return i.keys, nil
	}
	found, err := discovery.Discover(ctx, i.Issuer, i.web)
	if err != nil {
		if found, err = discovery.Discover(ctx, i.Issuer, i.web, serverMetadata(i.Issuer)); err != nil {
			return nil, fmt.Errorf("find keys of issuer: %w", err)
		}
	}
	if found.JwksURI == "" {
		return nil, errors.New("find keys of issuer: its metadata names none")
	}
	i.keys = rp.NewRemoteKeySet(i.web, found.JwksURI)
	return i.keys, nil
}

// serverMetadata is where an authorization server that does not speak OpenID
// Connect has its metadata (RFC 8414).
func serverMetadata(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return issuer
	}
	u.Path = "/.well-known/oauth-authorization-server" + strings.TrimSuffix(u.Path, "/")
	return u.String()
}

// metadataURL is where clients find our metadata: at the origin of the audience.
func (i *issuer) metadataURL() string {
	u, err := url.Parse(i.Audience)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + metadataPath + strings.TrimSuffix(u.Path, "/")
}

// metadata tells clients whose tokens we take.
func (i *issuer) metadata() http.Handler {
	return auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: i.Audience, AuthorizationServers: []string{i.Issuer}, ScopesSupported: slices.Clone(i.Scopes),
		BearerMethodsSupported: []string{"header"}, ResourceName: "Sallyport",
	})
}

// slowly bounds how often the issuer is asked for its keys: a token that names
// a key which nobody knows asks for them anew, and anybody can make such tokens.
type slowly struct{ limit *rate.Limiter }

// RoundTrip implements [http.RoundTripper].
func (s *slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		return nil, errors.New("the issuer is asked too often")
	}
	return http.DefaultTransport.RoundTrip(r)
}
