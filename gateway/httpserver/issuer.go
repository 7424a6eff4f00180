package httpserver

import (
	"context"
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
	"golang.org/x/time/rate"

	"sallyport/internal/config"
)

// metadataPath is where the metadata of a protected resource is (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource"

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

// claimed is what an access token says of its owner.
type claimed struct {
	subject string
	scopes  []string
	expires time.Time
}

// verify returns the owner of the token, if it is valid: of the issuer, signed by
// it, for us, and valid now. Scopes are left to the caller.
func (i *issuer) verify(ctx context.Context, token string) (claimed, error) {
	claims := new(oidc.AccessTokenClaims)
	payload, err := oidc.ParseToken(token, claims)
	if err != nil {
		return claimed{}, fmt.Errorf("read token: %w", err)
	}
	if err := errors.Join(oidc.CheckIssuer(claims, i.Issuer), oidc.CheckAudience(claims, i.Audience), oidc.CheckSubject(claims)); err != nil {
		return claimed{}, err
	}
	keys, err := i.keySet(ctx)
	if err != nil {
		return claimed{}, err
	}
	if err := oidc.CheckSignature(ctx, token, payload, claims, algorithms(), keys); err != nil {
		return claimed{}, err
	}
	if err := oidc.CheckExpiration(claims, -leeway); err != nil {
		return claimed{}, err
	}
	if begin := claims.NotBefore.AsTime(); !begin.IsZero() && time.Now().Add(leeway).Before(begin) {
		return claimed{}, errors.New("the token is not valid yet")
	}
	return claimed{subject: claims.Subject, scopes: claims.Scopes, expires: claims.GetExpiration().Add(leeway)}, nil
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

// metadata tells clients which issuer's tokens are accepted. It is public, pages of all origins too (RFC 9728, 3.1).
func (i *issuer) metadata() http.Handler {
	document, err := json.Marshal(map[string]any{
		"resource": i.Audience, "authorization_servers": []string{i.Issuer}, "scopes_supported": i.Scopes,
		"bearer_methods_supported": []string{"header"}, "resource_name": "Sallyport",
	})
	if err != nil { // texts only
		document = []byte("{}")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Allow-Methods", "GET, OPTIONS")
		switch r.Method {
		case http.MethodOptions:
			w.WriteHeader(http.StatusNoContent)
		case http.MethodGet, http.MethodHead:
			header.Set("Content-Type", "application/json")
			_, _ = w.Write(document)
		default:
			header.Set("Allow", "GET, HEAD, OPTIONS")
			refuse(w, refusal{status: http.StatusMethodNotAllowed, detail: "use GET here"})
		}
	})
}

// slowly bounds how often the issuer is asked for its keys: a token that names
// an unknown key fetches them again, and anyone can make such tokens.
type slowly struct{ limit *rate.Limiter }

// RoundTrip implements [http.RoundTripper].
func (s *slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		return nil, errors.New("the issuer is asked too often")
	}
	return http.DefaultTransport.RoundTrip(r)
}
