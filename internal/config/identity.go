package config

import (
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/identity"
	"sallyport/internal/tokenexchange"
	"sallyport/internal/weburl"
	"sallyport/internal/yamlstrict"
)

// openIDScope is the scope that every login needs.
const openIDScope = "openid"

func defaultLogin() *Login {
	return &Login{Scopes: []string{openIDScope, "profile", "email"}, Refresh: 15 * time.Minute}
}

// identityDecoder reads the settings of logins and identities.
type identityDecoder struct{ policyDecoder }

func (d identityDecoder) login(at path, n *yaml.Node, l *Login) {
	d.Fields(at, n, []key{
		{"issuer", d.Text(&l.Issuer)},
		{"client_id", d.Text(&l.ClientID)},
		{"client_secret", d.Text((*string)(&l.ClientSecret))},
		{"scopes", d.Texts(&l.Scopes)},
		{"refresh", scalar(d.decoder, &l.Refresh, yamlstrict.Duration)},
		{"userinfo", scalar(d.decoder, &l.Userinfo, yamlstrict.Bool)},
	})
}

func (d identityDecoder) exchange(at path, n *yaml.Node, e *tokenexchange.Exchange) {
	d.Fields(at, n, []key{
		{"issuer", d.Text(&e.Issuer)},
		{"token_endpoint", d.Text(&e.TokenEndpoint)},
		{"client_id", d.Text(&e.ClientID)},
		{"client_secret", d.Text((*string)(&e.ClientSecret))},
		{"subject_token_type", d.OneOf(&e.SubjectTokenType, tokenexchange.AccessToken, tokenexchange.IDToken)},
		{"requested_token_type", d.OneOf(&e.RequestedTokenType, tokenexchange.AccessToken, tokenexchange.JWT, tokenexchange.IDJAG)},
		{"audience", d.Text(&e.Audience)},
		{"resource", d.Text(&e.Resource)},
		{"login", scalar(d.decoder, &e.Login, yamlstrict.Bool)},
	})
}

func (d identityDecoder) identity(at path, n *yaml.Node, i *identity.Expressions) {
	d.Fields(at, n, []key{
		{"principal", d.expression(&i.Principal)},
		{"groups", d.expression(&i.Groups)},
		{"roles", func(at path, n *yaml.Node) { d.roles(at, n, &i.Roles) }},
	})
}

func (d identityDecoder) roles(at path, n *yaml.Node, r *identity.Roles) {
	d.Fields(at, n, []key{
		{"viewer", d.expression(&r.Viewer)},
		{"user", d.expression(&r.User)},
		{"operator", d.expression(&r.Operator)},
		{"admin", d.expression(&r.Admin)},
	})
}

// identityProblems returns the problems of login and identity.
func (h HTTP) identityProblems(at path) (all []problem) {
	under := at.To("identity")
	for _, p := range identity.Check(h.Identity) {
		all = append(all, problem{at: append(slices.Clip(under), p.Key...), fallback: under, message: p.At.Message, inside: p.At})
	}
	if h.Login == nil {
		return all
	}
	all = append(all, h.Login.problems(at.To("login"))...)
	if h.OAuth != nil && h.OAuth.Issuer != h.Login.Issuer && h.Identity.Principal == "" {
		all = append(all, problem{at: at.To("login").To("issuer"), fallback: at.To("login"),
			message: `"http.oauth" has another issuer, and two issuers can give one subject to different people: set "principal" in "http.identity" to a claim that means the same person at both`})
	}
	return all
}

func (l Login) problems(at path) []problem {
	all := append(scopeProblems(at.To("scopes"), l.Scopes), between(at.To("refresh"), l.Refresh, time.Second, 24*time.Hour)...)
	missing := func(name, what string) problem {
		return problem{at: at, onKey: true, needs: []path{at.To(name), at.Unknown()}, message: label(at) + ` needs "` + name + `", ` + what}
	}
	switch {
	case l.Issuer == "":
		all = append(all, missing("issuer", "the URL of the OpenID provider"))
	case !weburl.IsSecure(l.Issuer) || strings.Contains(l.Issuer, "?"):
		all = append(all, problem{at: at.To("issuer"), message: "an issuer is an https:// URL without ? and #; http:// is for this machine only"})
	}
	if l.ClientID == "" {
		all = append(all, missing("client_id", "the id of the gateway's client at the provider"))
	}
	if !slices.Contains(l.Scopes, openIDScope) {
		all = append(all, problem{at: at.To("scopes"), fallback: at, message: `the scopes need openid: without it the provider gives no ID token`})
	}
	return all
}
