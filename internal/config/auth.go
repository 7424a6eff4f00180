package config

import (
	"fmt"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/tokenexchange"
	"sallyport/internal/weburl"
)

// Auth configures how to get an access token for an upstream over HTTP.
type Auth struct {
	// Type is the way to a token: oauth is the authorization code with PKCE, by `sallyport auth
	// login`; key is an API key that a person enters; none is never to try; default oauth.
	Type string
	// ClientID is the id of a pre-registered client; default: a client is registered.
	ClientID string
	// ClientSecret is the secret of that client.
	ClientSecret Secret
	// Issuer is the URL of the only authorization server to use; default the one that the
	// upstream names.
	Issuer string
	// ClientMetadata is the URL of a client id metadata document to use as client id.
	ClientMetadata string
	// Scopes are the requested scopes; default those in the server's metadata.
	Scopes []string
	// RedirectPort is the loopback port of the login's redirect; default any.
	RedirectPort int
	// Store is where tokens are kept: auto (the store with store.key, else the keyring if there is one, else a file), keyring, file.
	Store string
	// Header is the header of an API key; default Authorization, with the scheme Bearer unless the key has another.
	Header string
	// Per is principal if each principal of the gateway logs in as itself, and its calls have its own token or key; default: all
	// share one login.
	Per string
	// Exchange is how each principal gets its token in exchange for the one with which it signed in; default by a login.
	Exchange *tokenexchange.Exchange
}

// AuthKey is the value of Type for an API key that a person enters.
const AuthKey = "key"

// PerPrincipal is the value of Per for a login of each principal.
const PerPrincipal = "principal"

// scopeToken matches a scope-token of RFC 6749.
var scopeToken = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+$`)

// isSet reports whether any setting differs from the defaults.
func (a Auth) isSet() bool {
	return a.Type != "" || a.ClientID != "" || a.ClientSecret != "" || a.ClientMetadata != "" || a.Issuer != "" || len(a.Scopes) > 0 ||
		a.RedirectPort != 0 || a.Header != "" || a.Store != "" && a.Store != "auto" || a.Per != "" || a.Exchange != nil
}

func (u Upstream) authProblems(at path) []problem {
	a, under := u.Auth, at.To("auth")
	all := scopeProblems(under.To("scopes"), a.Scopes)
	if a.Type != "" {
		all = append(all, oneOfProblem(under.To("type"), a.Type, authTypes)...)
	}
	all = append(all, oneOfProblem(under.To("store"), a.Store, stores)...)
	if name := u.authorization(); name != "" && a.isSet() && a.Type != "none" {
		all = append(all, problem{at: at.To("headers").To(name), onKey: true,
			message: fmt.Sprintf(`header %q and "auth" would both authenticate; keep one`, name)})
	}
	if a.Per != "" {
		all = append(all, oneOfProblem(under.To("per"), a.Per, []string{PerPrincipal})...)
	}
	if a.RedirectPort != 0 {
		all = append(all, between(under.To("redirect_port"), a.RedirectPort, 1024, 65535)...)
	}
	if a.ClientMetadata != "" && !weburl.IsHTTPS(a.ClientMetadata) {
		all = append(all, problem{at: under.To("client_metadata"), message: `"auth.client_metadata" must be the https:// URL of a document`})
	}
	if a.Issuer != "" && (!weburl.IsSecure(a.Issuer) || strings.Contains(a.Issuer, "?")) {
		all = append(all, problem{at: under.To("issuer"), message: `"auth.issuer" must be an https:// URL without ? and #; http:// is for this machine only`})
	}
	return slices.Concat(all, a.clientProblems(under), a.headerProblems(under, u.Headers))
}

// headerProblems returns what is wrong with the header of a key, which must differ from the headers of the settings.
func (a Auth) headerProblems(at path, others Secrets) []problem {
	at = at.To("header")
	switch one := (Secrets{a.Header: ""}); {
	case a.Header == "":
		return nil
	case a.Type != AuthKey:
		return []problem{{at: at, onKey: true, message: `"auth.header" is for the type "key"`}}
	case len(headerProblems(at, one)) > 0:
		return []problem{{at: at, message: fmt.Sprintf("%.40q cannot name a header", a.Header)}}
	case len(ownHeaderProblems(at, one)) > 0:
		return []problem{{at: at, message: fmt.Sprintf("header %.40q is set by the gateway", a.Header)}}
	}
	for _, name := range sortedKeys(others) {
		if strings.EqualFold(name, a.Header) {
			return []problem{{at: at, message: fmt.Sprintf(`header %q and "auth" would both authenticate; keep one`, name)}}
		}
	}
	return nil
}

// exchangeProblems returns what is wrong with an exchange, for people who sign in by the settings of HTTP.
func (a Auth) exchangeProblems(at path, h HTTP) (all []problem) {
	if a.Exchange == nil {
		return nil
	}
	under, issuers := at.To("exchange"), []string{}
	if h.Login != nil {
		issuers = append(issuers, h.Login.Issuer)
	}
	if h.OAuth != nil {
		issuers = append(issuers, h.OAuth.Issuer)
	}
	if a.Per == "" || a.Type != "" && a.Type != "oauth" {
		all = append(all, problem{at: under, onKey: true, needs: []path{at.To("per"), at.To("type")}, message: `"auth.exchange" is for OAuth tokens of each principal: set "per: principal", and no other type`})
	}
	if a.Exchange.RequestedTokenType == tokenexchange.IDJAG && (a.ClientID == "" && a.ClientMetadata == "" || a.Issuer == "") {
		all = append(all, problem{at: under, onKey: true, needs: []path{at.To("client_id"), at.To("issuer")},
			message: `an id-jag needs "auth.issuer", the authorization server of the upstream, which gets it, and "auth.client_id", the id of the gateway's client there`})
	}
	for _, f := range a.Exchange.Check(issuers) {
		one := problem{at: under.To(f.Key), message: f.Message}
		if f.Key == "" {
			one.at, one.onKey, one.needs = under, true, []path{under.Unknown(), under.To(f.Missing)}
		}
		all = append(all, one)
	}
	return all
}

// authorization returns the name of the Authorization header as the file writes it, or "".
func (u Upstream) authorization() string {
	for name := range u.Headers {
		if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
			return name
		}
	}
	return ""
}

// clientProblems returns missing and conflicting settings of the OAuth client.
func (a Auth) clientProblems(at path) []problem {
	var all []problem
	useless := func(name string, set bool) {
		if set {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf(`%q has no use with the type %q`, "auth."+name, a.Type)})
		}
	}
	switch a.Type {
	case "client_credentials":
		if a.ClientID == "" || a.ClientSecret == "" {
			all = append(all, problem{at: at, onKey: true, needs: []path{at.To("client_id"), at.To("client_secret")},
				message: `the type "client_credentials" needs "client_id" and "client_secret"`})
		}
		useless("client_metadata", a.ClientMetadata != "")
		useless("redirect_port", a.RedirectPort != 0)
		useless("per", a.Per != "")
		return all
	case "none", AuthKey:
		useless("per", a.Type == "none" && a.Per != "")
		useless("client_id", a.ClientID != "")
		useless("client_secret", a.ClientSecret != "")
		useless("client_metadata", a.ClientMetadata != "")
		useless("redirect_port", a.RedirectPort != 0)
		useless("issuer", a.Issuer != "")
		useless("scopes", a.Type == AuthKey && len(a.Scopes) > 0)
		return all
	}
	if a.ClientSecret != "" && a.ClientID == "" {
		all = append(all, problem{at: at.To("client_secret"), onKey: true, needs: []path{at.To("client_id")},
			message: `"auth.client_secret" needs the "client_id" that it belongs to`})
	}
	if a.ClientMetadata != "" && a.ClientID != "" {
		all = append(all, problem{at: at.To("client_metadata"), onKey: true,
			message: `"auth.client_metadata" is a client id itself; keep it or "client_id"`})
	}
	return all
}

func scopeProblems(at path, scopes []string) []problem {
	var all []problem
	for i, scope := range scopes {
		if !scopeToken.MatchString(scope) {
			all = append(all, problem{at: at.Item(i), message: "a scope is one word without quotes; list several one by one"})
		}
	}
	return all
}
