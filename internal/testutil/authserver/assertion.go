package authserver

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
)

const (
	assertionType   = typePrefix + "id-jag"
	assertionGrant  = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	assertionHeader = "oauth-id-jag+jwt"
	assertionLife   = 5 * time.Minute
)

// issueAssertion returns the response with an assertion of the subject's identity for an authorization server (ID-JAG).
func (s *Server) issueAssertion(subject map[string]any, form url.Values) (map[string]any, error) {
	client := s.opts.Exchange.Assertions[form.Get("audience")]
	switch {
	case form.Get("subject_token_type") != idType:
		return nil, refused("invalid_request", "an assertion is given for an ID token only")
	case len(form["audience"]) != 1 || client == "":
		return nil, refused("invalid_target", "no identities are asserted for %q", form["audience"])
	case len(form["resource"]) != 1 || !slices.Contains(s.opts.Exchange.Targets, form.Get("resource")):
		return nil, refused("invalid_target", "there is no resource %q", form["resource"])
	}
	now := time.Now()
	token, err := s.signToken(assertionHeader, map[string]any{
		"iss": s.URL, "sub": subject["sub"], "aud": form.Get("audience"), "client_id": client, "resource": form.Get("resource"), "scope": form.Get("scope"),
		"jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return nil, refused("server_error", "%v", err)
	}
	return map[string]any{"access_token": token, "issued_token_type": assertionType, "token_type": "N_A", "expires_in": int(assertionLife.Seconds())}, nil
}

// redeem redeems an assertion once (RFC 7523, section 3, and the draft of the ID-JAG).
func (s *Server) redeem(r *http.Request) (map[string]any, error) {
	c, err := s.authenticate(r)
	switch {
	case err != nil:
		return nil, err
	case s.opts.Provider == nil:
		return nil, refused("unsupported_grant_type", "no assertions are redeemed here")
	case !c.Redeems:
		return nil, refused("unauthorized_client", "the client may not redeem assertions")
	}
	claims, err := s.verifyAssertion(r.Context(), r.PostForm.Get("assertion"))
	if err != nil {
		return nil, refused("invalid_grant", "%v", err)
	}
	resource, _ := claims.Claims["resource"].(string)
	switch asked := r.PostForm.Get("resource"); {
	case claims.ClientID != c.ID:
		return nil, refused("invalid_grant", "the assertion is for another client")
	case !slices.Contains(s.opts.Redeems, resource) || asked != "" && asked != resource:
		return nil, refused("invalid_target", "there is no resource %q", resource)
	case !s.store.redeemOnce(claims.JWTID):
		return nil, refused("invalid_grant", "the assertion was redeemed before")
	}
	return s.issueExchanged(c, claims.Claims, url.Values{"scope": {"read"}}, []string{resource})
}

// verifyAssertion returns the claims of an assertion of the identity provider for this server.
func (s *Server) verifyAssertion(ctx context.Context, token string) (*oidc.AccessTokenClaims, error) {
	claims := new(oidc.AccessTokenClaims)
	payload, err := oidc.ParseToken(token, claims)
	if err != nil {
		return nil, err
	}
	if headerType(token) != assertionHeader {
		return nil, refused("invalid_grant", "it is no ID-JAG")
	}
	if err := oidc.CheckIssuer(claims, s.opts.Provider.URL); err != nil {
		return nil, err
	}
	if err := oidc.CheckAudience(claims, s.URL); err != nil {
		return nil, err
	}
	keys := rp.NewRemoteKeySet(http.DefaultClient, s.opts.Provider.URL+"/keys")
	if err := oidc.CheckSignature(ctx, token, payload, claims, []string{"RS256", "ES256"}, keys); err != nil {
		return nil, err
	}
	return claims, oidc.CheckExpiration(claims, 0)
}

// headerType returns the type in the header of a JWT.
func headerType(token string) string {
	part, _, _ := strings.Cut(token, ".")
	var header struct {
		Type string `json:"typ"`
	}
	if data, err := base64.RawURLEncoding.DecodeString(part); err != nil || json.Unmarshal(data, &header) != nil {
		return ""
	}
	return header.Type
}

func (s *store) redeemOnce(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" || s.redeemed[id] {
		return false
	}
	s.redeemed[id] = true
	return true
}

// SignAssertion returns an assertion with these claims, signed with the key of the server.
func (s *Server) SignAssertion(claims map[string]any) (string, error) {
	return s.signToken(assertionHeader, claims)
}
