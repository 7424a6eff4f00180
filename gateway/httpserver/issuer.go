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

	"sallyport/gateway/signin"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/tokenexchange"
)

// metadataPath is the path of the protected resource metadata (RFC 9728).
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
		Timeout: 10 * time.Second, Transport: &rateLimitedTransport{rate.NewLimiter(rate.Every(2*time.Second), 10)},
	}}
}

// leeway is the accepted clock difference to the issuer.
const leeway = 30 * time.Second

// verify returns the claims of a valid token: issued and signed by the issuer, for
// the audience or, at an endpoint of the settings, for the endpoint, and not expired. The caller checks scopes.
func (i *issuer) verify(ctx context.Context, token, endpoint string) (signin.Claims, error) {
	claims := new(oidc.AccessTokenClaims)
	payload, err := oidc.ParseToken(token, claims)
	if err != nil {
		return signin.Claims{}, fmt.Errorf("read token: %w", err)
	}
	if err := errors.Join(oidc.CheckIssuer(claims, i.Issuer), i.checkAudience(claims, endpoint), oidc.CheckSubject(claims)); err != nil {
		return signin.Claims{}, err
	}
	keys, err := i.keySet(ctx)
	if err != nil {
		return signin.Claims{}, err
	}
	if err := oidc.CheckSignature(ctx, token, payload, claims, signin.Algorithms(), keys); err != nil {
		return signin.Claims{}, err
	}
	if err := oidc.CheckExpiration(claims, -leeway); err != nil {
		return signin.Claims{}, err
	}
	if begin := claims.NotBefore.AsTime(); !begin.IsZero() && time.Now().Add(leeway).Before(begin) {
		return signin.Claims{}, errors.New("the token is not valid yet")
	}
	all, err := signin.Decode(token)
	return signin.Claims{
		All: all, Scopes: claims.Scopes, Issued: claims.GetIssuedAt(), Expires: claims.GetExpiration().Add(leeway),
		Tokens: []access.Subject{{Token: token, Kind: kindOf(all), Issuer: i.Issuer, ID: claims.Subject, Expires: claims.GetExpiration()}},
	}, err
}

// kindOf returns the kind of a verified token with which a client called. Access tokens have a client or scopes (RFC 9068, 2.2), ID
// tokens have neither.
func kindOf(claims map[string]any) string {
	for _, name := range []string{"client_id", "cid", "scope", "scp"} {
		if _, ok := claims[name]; ok {
			return tokenexchange.AccessToken
		}
	}
	return tokenexchange.IDToken
}

// checkAudience accepts a token for all tools everywhere, and one for an endpoint only there.
func (i *issuer) checkAudience(claims oidc.Claims, endpoint string) error {
	err := oidc.CheckAudience(claims, i.Audience)
	if err != nil && endpoint != "" {
		err = oidc.CheckAudience(claims, i.resource(endpoint))
	}
	return err
}

// keySet returns the issuer's keys, which it fetches for the first token, so that
// the gateway starts even if the issuer is down.
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

// serverMetadata returns the metadata URL of an authorization server without
// OpenID Connect (RFC 8414).
func serverMetadata(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return issuer
	}
	u.Path = "/.well-known/oauth-authorization-server" + strings.TrimSuffix(u.Path, "/")
	return u.String()
}

// resource returns the resource (RFC 8707) of an endpoint of the settings, or of /mcp for "": where the audience is the URL of
// /mcp, an endpoint is one of its own. It does not depend on whether there is such an endpoint.
func (i *issuer) resource(endpoint string) string {
	if !strings.HasSuffix(i.Audience, "/mcp") || !config.ValidEndpoint(endpoint) {
		return i.Audience
	}
	return i.Audience + "/" + endpoint
}

// metadataURL returns the URL of the metadata of a resource, at the origin of the audience.
func (i *issuer) metadataURL(endpoint string) string {
	u, err := url.Parse(i.resource(endpoint))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + metadataPath + strings.TrimSuffix(u.Path, "/")
}

// metadata serves the resource metadata, which names the accepted issuer. It is public, also for pages of all origins (RFC 9728, 3.1).
func (i *issuer) metadata() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Allow-Methods", "GET, OPTIONS")
		switch r.Method {
		case http.MethodOptions:
			w.WriteHeader(http.StatusNoContent)
		case http.MethodGet, http.MethodHead:
			header.Set("Content-Type", "application/json")
			_, _ = w.Write(i.document(r.URL.Path))
		default:
			header.Set("Allow", "GET, HEAD, OPTIONS")
			refuse(w, refusal{status: http.StatusMethodNotAllowed, detail: "use GET here"})
		}
	})
}

// document returns the metadata at a path: metadataPath, followed by the path of the resource.
func (i *issuer) document(path string) []byte {
	endpoint := ""
	if u, err := url.Parse(i.Audience); err == nil {
		endpoint, _ = strings.CutPrefix(path, metadataPath+u.Path+"/")
	}
	document, err := json.Marshal(map[string]any{
		"resource": i.resource(endpoint), "authorization_servers": []string{i.Issuer}, "scopes_supported": i.Scopes,
		"bearer_methods_supported": []string{"header"}, "resource_name": "Sallyport",
	})
	if err != nil { // texts only
		return []byte("{}")
	}
	return document
}

// rateLimitedTransport limits the rate of requests to the issuer: a token with an unknown key
// triggers a fetch, and anyone can create such tokens.
type rateLimitedTransport struct{ limit *rate.Limiter }

// RoundTrip implements [http.RoundTripper].
func (s *rateLimitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		return nil, errors.New("too many requests to the issuer")
	}
	return http.DefaultTransport.RoundTrip(r)
}
