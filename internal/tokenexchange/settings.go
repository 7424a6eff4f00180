// Package tokenexchange has the settings by which the token of a person is exchanged for one of an upstream (RFC 8693), and the
// checks of the result. Its main type is [Exchange].
package tokenexchange

import (
	"slices"
	"strings"

	"sallyport/internal/secretvalue"
	"sallyport/internal/weburl"
)

// Kinds of tokens, as the settings name them: the ends of their URNs.
const (
	AccessToken = "access_token"
	IDToken     = "id_token"
	JWT         = "jwt"
	// IDJAG is an assertion of a person's identity for the authorization server of an upstream.
	IDJAG = "id-jag"
)

// URN returns the identifier of a kind of token (RFC 8693, section 3).
func URN(kind string) string { return "urn:ietf:params:oauth:token-type:" + kind }

// GrantType is the grant type of an exchange, AssertionGrantType that of an assertion (RFC 7523).
const (
	GrantType          = "urn:ietf:params:oauth:grant-type:token-exchange"
	AssertionGrantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// Exchange is how a token is exchanged.
type Exchange struct {
	// Issuer is the URL of the identity provider of the exchanged tokens: that of http.login or http.oauth.
	Issuer string
	// TokenEndpoint is the URL where they are exchanged; default that of the issuer's metadata.
	TokenEndpoint string
	// ClientID is the id of the gateway's client there.
	ClientID string
	// ClientSecret is the secret of that client.
	ClientSecret secretvalue.Secret
	// SubjectTokenType is the kind of token that is exchanged: access_token, with which clients call the gateway, or id_token, of a
	// sign-in; default access_token.
	SubjectTokenType string
	// RequestedTokenType is the kind of token that is requested: access_token or jwt is sent to the upstream, an id-jag is redeemed at its
	// authorization server; default access_token.
	RequestedTokenType string
	// Audience is the name of the upstream at the identity provider; default none, for an id-jag the issuer of its authorization server.
	Audience string
	// Resource is the URL of the upstream as the identity provider knows it; default the upstream's url, unless audience is set.
	Resource string
	// Login lets a principal without such a token log in at the page; without it, its calls fail.
	Login bool
}

// New returns the defaults.
func New() *Exchange {
	return &Exchange{SubjectTokenType: AccessToken, RequestedTokenType: AccessToken}
}

// Only reports whether a principal can get tokens by exchange only. It is false for nil, which exchanges nothing.
func (s *Exchange) Only() bool { return s != nil && !s.Login }

// Secret returns the secret of the client, "" for none.
func (s *Exchange) Secret() string {
	if s == nil {
		return ""
	}
	return string(s.ClientSecret)
}

// Fault is an error in settings.
type Fault struct {
	// Key is the wrong key, Missing one that is missing.
	Key, Missing, Message string
}

// Check returns what is wrong, if people sign in at these issuers.
func (s *Exchange) Check(issuers []string) (all []Fault) {
	wrong := func(key, message string) { all = append(all, Fault{Key: key, Message: message}) }
	missing := func(key, what string) {
		all = append(all, Fault{Missing: key, Message: `"auth.exchange" needs "` + key + `", ` + what})
	}
	switch {
	case s.Issuer == "":
		missing("issuer", "the URL of the identity provider whose tokens are exchanged")
	case !isEndpoint(s.Issuer):
		wrong("issuer", "an issuer is an https:// URL without ? and #; http:// is for this machine only")
	case !slices.Contains(issuers, s.Issuer):
		wrong("issuer", `nobody comes with a token of this issuer: it must be the issuer of "http.login" or "http.oauth"`)
	}
	if s.ClientID == "" {
		missing("client_id", "the id of the gateway's client at the issuer")
	}
	if s.RequestedTokenType == IDJAG && s.SubjectTokenType != IDToken {
		wrong("requested_token_type", `an id-jag is given for the ID token of a person: set "subject_token_type: id_token"`)
	}
	if s.TokenEndpoint != "" && !isEndpoint(s.TokenEndpoint) {
		wrong("token_endpoint", "a token endpoint is an https:// URL without ? and #; http:// is for this machine only")
	}
	if s.Resource != "" && (!strings.Contains(s.Resource, ":") || strings.Contains(s.Resource, "#")) {
		wrong("resource", "a resource is an absolute URI without # (RFC 8707)")
	}
	return all
}

func isEndpoint(text string) bool { return weburl.IsSecure(text) && !strings.ContainsAny(text, "?#") }
