package authserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Exchange configures the exchange of tokens of the server's users.
type Exchange struct {
	// Audience is what access tokens must be for that are exchanged. ID tokens must be for the client.
	Audience string
	// Targets are the audiences and resources of tokens that can be requested.
	Targets []string
	// Assertions are the authorization servers for which the identity of a user is asserted, with the id of the client there.
	Assertions map[string]string
}

const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	typePrefix    = "urn:ietf:params:oauth:token-type:"
	accessType    = typePrefix + "access_token"
	idType        = typePrefix + "id_token"
	jwtType       = typePrefix + "jwt"
)

// oauthError is an error response of the token endpoint (RFC 6749, section 5.2).
type oauthError struct {
	status     int
	code, text string
}

func (e *oauthError) Error() string { return e.code + ": " + e.text }

func refused(code, format string, args ...any) error {
	status := http.StatusBadRequest
	if code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	return &oauthError{status, code, fmt.Sprintf(format, args...)}
}

// ChangeExchanged makes change edit the responses to exchanges. nil ends it.
func (s *Server) ChangeExchanged(change func(response map[string]any)) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.changeExchanged = change
}

// RedirectTokens makes the token endpoint answer with a redirect. "" ends it.
func (s *Server) RedirectTokens(to string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.redirectTokens = to
}

// serveExchange serves a token request if it is an exchange, or if the test makes the endpoint redirect.
func (s *Server) serveExchange(w http.ResponseWriter, r *http.Request) bool {
	s.store.mu.Lock()
	redirect, change := s.store.redirectTokens, s.store.changeExchanged
	s.store.mu.Unlock()
	if redirect != "" {
		http.Redirect(w, r, redirect, http.StatusTemporaryRedirect)
		return true
	}
	var response map[string]any
	var err error
	switch r.PostFormValue("grant_type") {
	case exchangeGrant:
		response, err = s.exchange(r)
	case assertionGrant:
		response, err = s.redeem(r)
	default:
		return false
	}
	answerToken(w, response, err, change)
	return true
}

func answerToken(w http.ResponseWriter, response map[string]any, err error, change func(map[string]any)) {
	w.Header().Set("Cache-Control", "no-store")
	if e, ok := err.(*oauthError); ok { //nolint:errorlint // it is not wrapped
		answer(w, e.status, map[string]any{"error": e.code, "error_description": e.text})
		return
	}
	if change != nil {
		change(response)
	}
	answer(w, http.StatusOK, response)
}

// exchange exchanges a token. Its errors have the codes of RFC 8693, section 2.2.2.
func (s *Server) exchange(r *http.Request) (map[string]any, error) {
	form := r.PostForm
	c, err := s.authenticate(r)
	switch {
	case err != nil:
		return nil, err
	case s.opts.Exchange == nil:
		return nil, refused("unsupported_grant_type", "no tokens are exchanged here")
	case !c.Exchanges:
		return nil, refused("unauthorized_client", "the client may not exchange tokens")
	}
	for name, all := range form {
		if len(all) > 1 && name != "audience" && name != "resource" {
			return nil, refused("invalid_request", "%s is given twice", name)
		}
	}
	subject, err := s.verifySubject(r.Context(), c, form.Get("subject_token"), form.Get("subject_token_type"))
	if err != nil {
		return nil, err
	}
	if form.Get("requested_token_type") == assertionType {
		return s.issueAssertion(subject, form)
	}
	targets := slices.Concat(form["audience"], form["resource"])
	for _, target := range targets {
		if !slices.Contains(s.opts.Exchange.Targets, target) {
			return nil, refused("invalid_target", "there is no target %s", target)
		}
	}
	if len(targets) == 0 {
		return nil, refused("invalid_target", "the target is missing")
	}
	return s.issueExchanged(c, subject, form, targets)
}

// authenticate authenticates the client of a request, in the way that it is registered for.
func (s *Server) authenticate(r *http.Request) (*client, error) {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	c := s.store.clients[id]
	switch {
	case c == nil:
		return nil, refused("invalid_client", "unknown client")
	case c.Secret != secret || c.Secret != "" && basic == c.Post:
		return nil, refused("invalid_client", "the client is not authenticated")
	}
	return c, nil
}

// verifySubject returns the claims of the token that is exchanged.
func (s *Server) verifySubject(ctx context.Context, c *client, token, kind string) (map[string]any, error) {
	if token == "" || kind != accessType && kind != idType {
		return nil, refused("invalid_request", "subject_token is missing, or its type is not known: %q", kind)
	}
	ctx = op.ContextWithIssuer(ctx, s.URL)
	claims, err := op.VerifyAccessToken[*oidc.AccessTokenClaims](ctx, token, s.provider.AccessTokenVerifier(ctx))
	if err != nil {
		return nil, refused("invalid_request", "the subject token is not valid: %v", err)
	}
	_, scoped := claims.Claims["scope"]
	audience := s.opts.Exchange.Audience
	if kind == idType {
		audience = c.ID
	}
	s.store.mu.Lock()
	disabled := s.store.disabled[claims.Subject]
	s.store.mu.Unlock()
	switch {
	case scoped == (kind == idType):
		return nil, refused("invalid_request", "the subject token is of another type than %s", kind)
	case !slices.Contains(claims.Audience, audience):
		return nil, refused("invalid_request", "the subject token is for another audience than %s", audience)
	case disabled:
		return nil, refused("invalid_request", "the account is disabled")
	}
	return maps.Clone(claims.Claims), nil
}

// issueExchanged returns the response with a token of the subject.
func (s *Server) issueExchanged(c *client, subject map[string]any, form url.Values, targets []string) (map[string]any, error) {
	kind := form.Get("requested_token_type")
	if kind == "" {
		kind = accessType
	}
	if kind != accessType && kind != jwtType {
		return nil, refused("invalid_request", "no tokens of type %q are issued", kind)
	}
	who, _ := subject["sub"].(string)
	scope := form.Get("scope")
	if scope == "" {
		scope = "read"
	}
	id, expires := s.store.issue(&grant{family: rand.Text(), client: c.ID, subject: who})
	token, err := s.signToken("at+jwt", map[string]any{
		"iss": s.URL, "sub": who, "aud": targets, "client_id": c.ID, "scope": scope, "jti": id, "iat": time.Now().Unix(), "exp": expires.Unix(),
	})
	if err != nil {
		return nil, refused("server_error", "%v", err)
	}
	return map[string]any{"access_token": token, "issued_token_type": kind, "token_type": "Bearer", "expires_in": int(time.Until(expires).Round(time.Second).Seconds()), "scope": scope}, nil
}

// Subject returns the subject of a token, without a check; "" for an opaque one.
func Subject(token string) string {
	claims := map[string]any{}
	if _, err := oidc.ParseToken(token, &claims); err != nil {
		return ""
	}
	who, _ := claims["sub"].(string)
	return strings.TrimSpace(who)
}

// signToken returns a token of a type with these claims, signed with the key of the server.
func (s *Server) signToken(kind string, claims map[string]any) (string, error) {
	s.store.mu.Lock()
	key := s.store.key
	s.store.mu.Unlock()
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	return signAs(kind, key.alg, key.key, key.id, payload)
}
