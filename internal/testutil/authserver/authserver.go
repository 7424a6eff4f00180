// Package authserver runs a real OAuth 2.1 authorization server for tests: the
// provider of zitadel/oidc over a storage in memory, on a loopback port, with what
// that provider lacks next to it: dynamic registration (RFC 7591), the resource
// parameter (RFC 8707) as the audience of its JWT access tokens, the iss
// parameter (RFC 9207) and the metadata document of RFC 8414. Refresh tokens
// rotate, and using one twice revokes all that came from it, as servers do that
// mean it. [Browser] is the person who logs in.
package authserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"sallyport/internal/testutil/tlstest"
)

// Options configure a [Server]. The zero value is usable.
type Options struct {
	// Life is how long access tokens are valid; 0 means an hour.
	Life time.Duration
	// Clients are registered before the start, next to those that register themselves.
	Clients []Client
	// Scopes are what the metadata lists, "offline_access" next to them; nil means read and write.
	Scopes []string
	// NoRegistration leaves dynamic registration out; RefuseRegistration offers it and answers 403.
	NoRegistration, RefuseRegistration bool
	// NoIss leaves out the iss parameter of authorization responses.
	NoIss bool
	// NoRevocation leaves the revocation endpoint out of the metadata.
	NoRevocation bool
	// OpenID makes it an OpenID provider, which needs no resource parameter.
	OpenID bool
	// Exchange is what tokens are exchanged for (RFC 8693); nil: they are not.
	Exchange *Exchange
	// Provider is the identity provider of the assertions that are redeemed (RFC 7523), for the resources in Redeems; nil: none are.
	Provider *Server
	Redeems  []string
	// Documents fetches client id metadata documents; nil: they are not supported.
	Documents *http.Client
	// TLS replaces the certificate of tlstest's authority.
	TLS *tls.Config
}

// Client is a registered client.
type Client struct {
	ID string
	// Secret makes it confidential; "" is a public client.
	Secret string
	// Post makes the client send its secret in the body, not in a header.
	Post bool
	// RedirectURIs may have any port when they are on loopback.
	RedirectURIs []string
	// Service allows the client credentials grant, and only that.
	Service bool
	// Exchanges allows the client to exchange tokens.
	Exchanges bool
	// Redeems allows it to redeem assertions of the identity provider.
	Redeems bool
}

// Server is a running authorization server. It is safe for concurrent use.
type Server struct {
	// URL is the issuer, without a slash at its end.
	URL string

	opts     Options
	store    *store
	provider *op.Provider
}

// New starts a server, which ends with the test.
func New(tb testing.TB, opts *Options) *Server {
	tb.Helper()
	s := &Server{}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Life == 0 {
		s.opts.Life = time.Hour
	}
	if s.opts.Scopes == nil {
		s.opts.Scopes = []string{"read", "write"}
	}
	s.store = newStore(tb, s.opts)
	mux := http.NewServeMux()
	web := httptest.NewUnstartedServer(mux)
	if web.TLS = s.opts.TLS; web.TLS != nil {
		web.StartTLS()
	} else {
		tlstest.Start(tb, web)
	}
	tb.Cleanup(web.Close)
	s.URL = web.URL
	provider, err := op.NewProvider(&op.Config{
		CryptoKey: [32]byte{1}, CodeMethodS256: true, AuthMethodPost: true, GrantTypeRefreshToken: true,
		SupportedScopes: append([]string{oidc.ScopeOfflineAccess}, s.opts.Scopes...),
	}, s.store, op.StaticIssuer(s.URL), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		tb.Fatal(err)
	}
	s.provider = provider
	s.routes(mux)
	return s
}

func (s *Server) routes(mux *http.ServeMux) {
	mux.HandleFunc("/.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("/.well-known/openid-configuration", s.metadata)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /login", s.loginPage)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("/userinfo", s.serveUserinfo)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), resourceKey{}, r.FormValue("resource")))
		s.store.countGrant(r)
		if r.URL.Path == "/oauth/token" && s.serveExchange(w, r) {
			return
		}
		if r.URL.Path == "/oauth/token" && s.opts.OpenID {
			s.serveToken(w, r)
			return
		}
		s.provider.ServeHTTP(&issWriter{ResponseWriter: w, server: s}, r)
	})
}

type resourceKey struct{}

// metadata returns the provider's metadata, extended by our additions.
func (s *Server) metadata(w http.ResponseWriter, r *http.Request) {
	known := op.CreateDiscoveryConfig(op.ContextWithIssuer(r.Context(), s.URL), s.provider, s.store)
	raw, err := json.Marshal(known)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	all := map[string]any{}
	_ = json.Unmarshal(raw, &all)
	if !s.opts.NoRegistration {
		all["registration_endpoint"] = s.URL + "/register"
	}
	if s.opts.NoRevocation {
		delete(all, "revocation_endpoint")
	}
	all["authorization_response_iss_parameter_supported"] = !s.opts.NoIss
	all["client_id_metadata_document_supported"] = s.opts.Documents != nil
	answer(w, http.StatusOK, all)
}

// issWriter adds iss to the redirects that answer a client.
type issWriter struct {
	http.ResponseWriter
	server *Server
}

func (w *issWriter) WriteHeader(status int) {
	at, err := url.Parse(w.Header().Get("Location"))
	query := at.Query()
	if err == nil && !w.server.opts.NoIss && (query.Has("code") || query.Has("error")) {
		query.Set("iss", w.server.URL)
		at.RawQuery = query.Encode()
		w.Header().Set("Location", at.String())
	}
	w.ResponseWriter.WriteHeader(status)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

type registration struct {
	RedirectURIs    []string `json:"redirect_uris"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`
	GrantTypes      []string `json:"grant_types"`
	ApplicationType string   `json:"application_type"`
	ClientName      string   `json:"client_name"`
	ClientID        string   `json:"client_id"`
	ClientSecret    string   `json:"client_secret,omitempty"`
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked registration
	err := json.NewDecoder(r.Body).Decode(&asked)
	switch {
	case s.opts.NoRegistration || s.opts.RefuseRegistration:
		answer(w, http.StatusForbidden, map[string]string{"error": "access_denied", "error_description": "not here"})
	case err != nil || len(asked.RedirectURIs) == 0:
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_redirect_uri"})
	case asked.ApplicationType != "native":
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata", "error_description": "loopback redirects are for native clients"})
	default:
		client := s.store.register(asked.RedirectURIs, asked.AuthMethod)
		asked.ClientID, asked.ClientSecret = client.ID, client.Secret
		answer(w, http.StatusCreated, asked)
	}
}

var page = template.Must(template.New("login").Parse(`<!doctype html><title>Log in</title>
<form method="post" action="/login"><input type="hidden" name="id" value="{{.}}">
<label>User <input name="user" value="ada"></label> <button name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button></form>`))

func (s *Server) loginPage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(w, r.FormValue("id"))
}

// login handles the user's decision. The form says who the user is, who is always authenticated; the default is ada.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	id := r.FormValue("id")
	request, err := s.store.AuthRequestByID(r.Context(), id)
	if err != nil {
		http.Error(w, "no such login", http.StatusNotFound)
		return
	}
	if r.FormValue("answer") != "allow" {
		op.AuthRequestError(&issWriter{ResponseWriter: w, server: s}, r, request, oidc.ErrAccessDenied(), s.provider)
		return
	}
	s.store.consent(id, cmp.Or(r.FormValue("user"), "ada"))
	http.Redirect(w, r, op.AuthCallbackURL(s.provider)(op.ContextWithIssuer(r.Context(), s.URL), id), http.StatusFound)
}

// Claims are the claims of an access token.
type Claims struct {
	Subject, Client string
	Audience        []string
	Scopes          []string
	Expires         time.Time
}

// Verify returns the claims of an access token if this server issued it, it has not expired and it has not been
// revoked. The caller must check the audience.
func (s *Server) Verify(ctx context.Context, token string) (Claims, error) {
	ctx = op.ContextWithIssuer(ctx, s.URL)
	claims, err := op.VerifyAccessToken[*oidc.AccessTokenClaims](ctx, token, s.provider.AccessTokenVerifier(ctx))
	if err != nil {
		return Claims{}, fmt.Errorf("verify token: %w", err)
	}
	if !s.store.live(claims.JWTID) {
		return Claims{}, fmt.Errorf("verify token: it was revoked")
	}
	scope, _ := claims.Claims["scope"].(string)
	return Claims{
		Subject: claims.Subject, Client: claims.ClientID, Audience: claims.Audience,
		Scopes: strings.Fields(scope), Expires: claims.GetExpiration(),
	}, nil
}

// Count returns the number of token requests with a grant type ("refresh_token", "authorization_code",
// "client_credentials"), of client registrations ("register"), or of reused refresh tokens ("reuse").
func (s *Server) Count(what string) int { return s.store.count(what) }

// RevokeAccess makes all access tokens invalid; refresh tokens stay.
func (s *Server) RevokeAccess() { s.store.revoke(false) }

// RevokeAll makes all access and refresh tokens invalid.
func (s *Server) RevokeAll() { s.store.revoke(true) }

// ForgetClients removes all registered clients.
func (s *Server) ForgetClients() { s.store.forgetClients() }
