package authserver

import (
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// client implements the provider's client interface.
type client struct{ Client }

func (c *client) GetID() string                       { return c.ID }
func (c *client) RedirectURIs() []string              { return c.Client.RedirectURIs }
func (c *client) PostLogoutRedirectURIs() []string    { return nil }
func (c *client) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }
func (c *client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (c *client) LoginURL(id string) string            { return "/login?id=" + id }
func (c *client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeJWT }
func (c *client) IDTokenLifetime() time.Duration       { return time.Hour }
func (c *client) DevMode() bool                        { return false }
func (c *client) IsScopeAllowed(string) bool           { return true }
func (c *client) IDTokenUserinfoClaimsAssertion() bool { return true }
func (c *client) ClockSkew() time.Duration             { return 0 }

// RestrictAdditionalIdTokenScopes lets all scopes into an id token.
//
//nolint:staticcheck // the provider's interface calls it so
func (c *client) RestrictAdditionalIdTokenScopes() narrower { return same }

// RestrictAdditionalAccessTokenScopes lets all scopes into a token.
func (c *client) RestrictAdditionalAccessTokenScopes() narrower { return same }

type narrower = func([]string) []string

func same(scopes []string) []string { return scopes }

func (c *client) AuthMethod() oidc.AuthMethod {
	switch {
	case c.Secret == "":
		return oidc.AuthMethodNone
	case c.Post:
		return oidc.AuthMethodPost
	}
	return oidc.AuthMethodBasic
}

func (c *client) GrantTypes() []oidc.GrantType {
	if c.Service {
		return []oidc.GrantType{oidc.GrantTypeClientCredentials}
	}
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken}
}
