package authserver

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// store is the provider's storage: clients, logins under way, tokens.
type store struct {
	life      time.Duration
	openID    bool
	documents *http.Client
	key       signingKey

	mu       sync.Mutex
	clients  map[string]*client
	requests map[string]*authRequest
	codes    map[string]string        // code to the id of its request
	access   map[string]string        // id of a live access token to its family
	refresh  map[string]*refreshToken // including used ones, to detect reuse
	counts   map[string]int
	users    map[string]map[string]any // claims by subject
	userinfo map[string]map[string]any // claims that only the userinfo endpoint has, by subject
	// userinfoAnswer replaces the answer of the userinfo endpoint, unless it is nil.
	userinfoAnswer func(http.ResponseWriter)
	disabled       map[string]bool
	// changeExchanged edits responses to exchanges, redirectTokens is where the token endpoint redirects to.
	changeExchanged func(response map[string]any)
	redirectTokens  string
	redeemed        map[string]bool // assertions that were redeemed
	forge           func(claims map[string]any) string
}

type refreshToken struct {
	grant
	used bool
}

// grant is what a login or a client was granted; family identifies all tokens derived from it.
type grant struct {
	family, client, subject, resource string
	scopes                            []string
	at                                time.Time
}

func (g *grant) GetSubject() string               { return g.subject }
func (g *grant) GetAudience() []string            { return audience(g.resource) }
func (g *grant) GetScopes() []string              { return g.scopes }
func (g *grant) GetClientID() string              { return g.client }
func (g *grant) GetAMR() []string                 { return nil }
func (g *grant) GetAuthTime() time.Time           { return g.at }
func (g *grant) SetCurrentScopes(scopes []string) { g.scopes = scopes }

func audience(resource string) []string {
	if resource == "" {
		return nil
	}
	return []string{resource}
}

type authRequest struct {
	grant
	id   string
	ask  oidc.AuthRequest
	done bool
}

func (a *authRequest) GetID() string                      { return a.id }
func (a *authRequest) GetACR() string                     { return "" }
func (a *authRequest) GetNonce() string                   { return a.ask.Nonce }
func (a *authRequest) GetRedirectURI() string             { return a.ask.RedirectURI }
func (a *authRequest) GetResponseType() oidc.ResponseType { return a.ask.ResponseType }
func (a *authRequest) GetResponseMode() oidc.ResponseMode { return a.ask.ResponseMode }
func (a *authRequest) GetState() string                   { return a.ask.State }
func (a *authRequest) Done() bool                         { return a.done }
func (a *authRequest) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: a.ask.CodeChallenge, Method: a.ask.CodeChallengeMethod}
}

// sharedKey is the signing key of all servers of a test binary: the race detector makes the generation of one take seconds.
var sharedKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newStore(tb testing.TB, opts Options) *store {
	tb.Helper()
	key, err := sharedKey()
	if err != nil {
		tb.Fatal(err)
	}
	s := &store{
		life: opts.Life, openID: opts.OpenID, documents: opts.Documents, key: signingKey{"k1", jose.RS256, key},
		userinfo: map[string]map[string]any{}, users: map[string]map[string]any{}, disabled: map[string]bool{}, clients: map[string]*client{}, requests: map[string]*authRequest{},
		redeemed: map[string]bool{}, codes: map[string]string{}, access: map[string]string{}, refresh: map[string]*refreshToken{}, counts: map[string]int{},
	}
	for _, c := range opts.Clients {
		s.clients[c.ID] = &client{c}
	}
	return s
}

func (s *store) forgetClients() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.clients)
}

func (s *store) register(redirects []string, method string) Client {
	c := Client{ID: rand.Text(), RedirectURIs: redirects, Post: method == "client_secret_post"}
	if method != "none" {
		c.Secret = rand.Text()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[c.ID] = &client{c}
	s.counts["register"]++
	return c
}

func (s *store) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[what]
}

func (s *store) countGrant(r *http.Request) {
	if grant := r.PostFormValue("grant_type"); grant != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts[grant]++
	}
}

func (s *store) consent(id, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if request := s.requests[id]; request != nil {
		request.done, request.at, request.subject = true, time.Now(), user
	}
}

func (s *store) live(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.access[token]
	return ok
}

func (s *store) revoke(refresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	if refresh {
		clear(s.refresh)
	}
}

func (s *store) CreateAuthRequest(ctx context.Context, ask *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	resource, _ := ctx.Value(resourceKey{}).(string)
	if ask.CodeChallenge == "" {
		return nil, oidc.ErrInvalidRequest().WithDescription("PKCE is required")
	}
	if resource == "" && !s.openID {
		return nil, &oidc.Error{ErrorType: "invalid_target", Description: "the resource parameter is required"}
	}
	request := &authRequest{id: rand.Text(), ask: *ask, grant: grant{
		family: rand.Text(), client: ask.ClientID, resource: resource, scopes: ask.Scopes,
	}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[request.id] = request
	return request, nil
}

var errNotFound = errors.New("not found")

func (s *store) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if request := s.requests[id]; request != nil {
		return request, nil
	}
	return nil, errNotFound
}

func (s *store) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	s.mu.Lock()
	id := s.codes[code]
	delete(s.codes, code) // a code is good once
	s.mu.Unlock()
	return s.AuthRequestByID(ctx, id)
}

func (s *store) SaveAuthCode(_ context.Context, id, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code] = id
	return nil
}

func (s *store) DeleteAuthRequest(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, id)
	return nil
}

func (s *store) CreateAccessToken(ctx context.Context, request op.TokenRequest) (string, time.Time, error) {
	g, err := grantOf(ctx, request)
	if err != nil {
		return "", time.Time{}, err
	}
	id, expires := s.issue(g)
	return id, expires, nil
}

func (s *store) CreateAccessAndRefreshTokens(ctx context.Context, request op.TokenRequest, current string) (string, string, time.Time, error) {
	g, err := grantOf(ctx, request)
	if err != nil {
		return "", "", time.Time{}, err
	}
	if err := s.use(current); err != nil {
		return "", "", time.Time{}, err
	}
	next := rand.Text()
	id, expires := s.issue(g)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh[next] = &refreshToken{grant: *g}
	return id, next, expires, nil
}

// grantOf also checks that a token request is for the resource of its login.
func grantOf(ctx context.Context, request op.TokenRequest) (*grant, error) {
	var g *grant
	switch r := request.(type) {
	case *authRequest:
		g = &r.grant
	case *grant:
		g = r
	default:
		return nil, oidc.ErrServerError()
	}
	if asked, _ := ctx.Value(resourceKey{}).(string); asked != g.resource {
		return nil, &oidc.Error{ErrorType: "invalid_target", Description: "another resource than that of the login"}
	}
	return g, nil
}

func (s *store) issue(g *grant) (string, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := rand.Text()
	s.access[id] = g.family
	return id, time.Now().Add(s.life)
}

// use consumes a refresh token. A second use means that it was copied.
func (s *store) use(token string) error {
	if token == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.refresh[token]
	if old == nil {
		return oidc.ErrInvalidGrant()
	}
	if old.used {
		s.counts["reuse"]++
		s.drop(old.family)
		return oidc.ErrInvalidGrant().WithDescription("the refresh token was used before")
	}
	old.used = true
	return nil
}

// drop revokes a family. It is called with mu held.
func (s *store) drop(family string) {
	for id, of := range s.access {
		if of == family {
			delete(s.access, id)
		}
	}
	for token, r := range s.refresh {
		if r.family == family {
			delete(s.refresh, token)
		}
	}
}

func (s *store) TokenRequestByRefreshToken(_ context.Context, token string) (op.RefreshTokenRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refresh[token]; r != nil && !s.disabled[r.subject] {
		g := r.grant
		return &g, nil
	}
	return nil, errNotFound
}

func (s *store) GetRefreshTokenInfo(_ context.Context, _ string, token string) (string, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refresh[token]; r != nil {
		return r.subject, token, nil
	}
	return "", "", op.ErrInvalidRefreshToken
}

func (s *store) RevokeToken(_ context.Context, token, _, clientID string) *oidc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts["revoke"]++
	if r := s.refresh[token]; r != nil && r.client == clientID {
		s.drop(r.family)
	}
	delete(s.access, token)
	return nil
}

func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	s.mu.Lock()
	known := s.clients[id]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if s.documents != nil && strings.HasPrefix(id, "https://") {
		return s.document(ctx, id)
	}
	return nil, oidc.ErrInvalidClient().WithDescription("unknown client")
}

// document reads a client id metadata document.
func (s *store) document(ctx context.Context, id string) (op.Client, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.documents.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var said registration
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return nil, err
	}
	if said.ClientID != id {
		return nil, errors.New("the document is of another client")
	}
	return &client{Client{ID: id, RedirectURIs: said.RedirectURIs}}, nil
}

func (s *store) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[id]; c == nil || c.Secret == "" || c.Secret != secret {
		return errNotFound
	}
	return nil
}

func (s *store) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	if err := s.AuthorizeClientIDSecret(ctx, id, secret); err != nil {
		return nil, err
	}
	return s.GetClientByClientID(ctx, id)
}

// ClientCredentialsTokenRequest binds the token to the requested resource, or to none, like servers without the
// resource parameter.
func (s *store) ClientCredentialsTokenRequest(ctx context.Context, id string, scopes []string) (op.TokenRequest, error) {
	resource, _ := ctx.Value(resourceKey{}).(string)
	return &grant{family: rand.Text(), client: id, subject: id, resource: resource, scopes: scopes}, nil
}

func (s *store) GetPrivateClaimsFromRequest(_ context.Context, request op.TokenRequest, _ []string) (map[string]any, error) {
	all := s.claimsOf(request.GetSubject())
	all["scope"] = strings.Join(request.GetScopes(), " ")
	return all, nil
}

// Required by the provider's interface, but not used in tests: users, sessions, JWT clients.

func (s *store) Health(context.Context) error                           { return nil }
func (s *store) TerminateSession(context.Context, string, string) error { return nil }
func (s *store) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errNotFound
}
func (s *store) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return nil, nil
}
func (s *store) GetKeyByIDAndClientID(context.Context, string, string) (*jose.JSONWebKey, error) {
	return nil, errNotFound
}
func (s *store) ValidateJWTProfileScopes(context.Context, string, []string) ([]string, error) {
	return nil, errNotFound
}
