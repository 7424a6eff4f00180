package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/suggest"
	"sallyport/internal/weburl"
)

// minToken is the least length of a token, against guessing.
const minToken = 16

// bearer matches a b64token of RFC 6750.
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

func (h HTTP) problems(at path) []problem {
	all := slices.Concat(
		between(at.To("body"), h.Body, KiB, GiB),
		between(at.To("grace"), h.Grace, 0, time.Hour),
		h.tokenProblems(at.To("tokens")),
		h.operatorProblems(at),
	)
	if h.URL != "" && (!weburl.IsSecure(h.URL) || strings.Count(strings.TrimSuffix(h.URL, "/"), "/") != 2 || strings.ContainsAny(h.URL, "?")) {
		all = append(all, problem{at: at.To("url"), message: `"http.url" must be https://HOST or https://HOST:PORT, without a path; http:// is for this machine only`})
	}
	for i, origin := range h.Origins {
		if !weburl.IsOrigin(origin) {
			all = append(all, problem{at: at.To("origins").Item(i), message: "an origin is scheme://host or scheme://host:port, without a path or a *"})
		}
	}
	for i, host := range h.Hosts {
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && !hostName.MatchString(host) {
			all = append(all, problem{at: at.To("hosts").Item(i), message: "a host is a name or an address, without a scheme, a port or a *"})
		}
	}
	all = append(all, h.identityProblems(at)...)
	if h.OAuth != nil {
		all = append(all, h.OAuth.problems(at.To("oauth"))...)
	}
	return all
}

func (h HTTP) tokenProblems(at path) []problem {
	var all []problem
	names := map[string]string{}
	for _, name := range sortedKeys(h.Tokens) {
		value := h.Tokens[name]
		other, twice := names[value]
		names[value] = name
		message := ""
		switch {
		case name == "":
			message = "a token needs a name for the log"
		case isPlaceholder(value):
			continue
		case len(value) < minToken:
			message = fmt.Sprintf("token %.40q is shorter than %d characters; make one with: openssl rand -hex 32", name, minToken)
		case !bearer.MatchString(value):
			message = fmt.Sprintf("token %.40q has characters that a bearer token cannot have; use letters, digits and -._~+/", name)
		case twice:
			message = fmt.Sprintf("tokens %.40q and %.40q are the same; give each client its own", other, name)
		default:
			continue
		}
		all = append(all, problem{at: at.To(name), message: message})
	}
	return all
}

// operatorProblems returns problems of operators, and of tokens for metrics.
func (h HTTP) operatorProblems(at path) (all []problem) {
	for i, name := range h.Metrics {
		if _, known := h.Tokens[name]; !known || slices.Contains(h.Operators, name) {
			all = append(all, problem{at: at.To("metrics").Item(i), needs: []path{at.To("tokens").To(name)}, message: fmt.Sprintf("%.40q must be a token of http.tokens, and no operator", name)})
		}
	}
	for i, name := range h.Operators {
		message := ""
		_, known := h.Tokens[name]
		subject, oauth := strings.CutPrefix(name, "oauth:")
		switch {
		case known, oauth && subject != "" && (h.OAuth != nil || h.Login != nil):
			continue
		case oauth:
			message = "an operator of this kind is oauth:NAME, and needs http.oauth or http.login"
		default:
			message = fmt.Sprintf("there is no token %.40q in http.tokens", name)
			if near := suggest.Of(name, sortedKeys(h.Tokens)); near != "" {
				message += "; did you mean " + near + "?"
			}
		}
		all = append(all, problem{at: at.To("operators").Item(i), needs: []path{at.To("tokens").To(name)}, message: message})
	}
	return all
}

func (r ResourceServer) problems(at path) []problem {
	all := scopeProblems(at.To("scopes"), r.Scopes)
	missing := func(name, what string) problem {
		return problem{at: at, onKey: true, needs: []path{at.To(name), at.Unknown()}, message: fmt.Sprintf("%s needs %q, %s", label(at), name, what)}
	}
	switch {
	case r.Issuer == "":
		all = append(all, missing("issuer", "the URL of the authorization server"))
	case !weburl.IsSecure(r.Issuer) || strings.Contains(r.Issuer, "?"):
		all = append(all, problem{at: at.To("issuer"), message: "an issuer is an https:// URL without ? and #; http:// is for this machine only"})
	}
	switch {
	case r.Audience == "":
		all = append(all, missing("audience", "the URL that clients reach /mcp by"))
	case !weburl.IsSecure(r.Audience):
		all = append(all, problem{at: at.To("audience"), message: "an audience is the https:// URL that clients reach /mcp by; http:// is for this machine only"})
	}
	return all
}
