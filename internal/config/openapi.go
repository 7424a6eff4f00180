package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"sallyport/internal/reference"

	"gopkg.in/yaml.v3"
)

// Basic is a user of HTTP basic authentication.
type Basic struct {
	// Username is the name of the user.
	Username string
	// Password is the password of the user.
	Password Secret
}

func (b Basic) isSet() bool { return b.Username != "" || b.Password != "" }

// HasLogin reports whether a person can log in to an upstream over HTTP.
func (u Upstream) HasLogin() bool {
	return (u.Auth.Type == "" || u.Auth.Type == "oauth") && u.authorization() == ""
}

// UsesOAuth reports whether requests to the API of an OpenAPI document get an OAuth token.
func (u Upstream) UsesOAuth() bool { return u.Auth.isSet() && u.Auth.Type != "none" }

func (d *decoder) basic(at path, n *yaml.Node, b *Basic) {
	d.Fields(at, n, []key{
		{"username", d.Text(&b.Username)},
		{"password", d.Text((*string)(&b.Password))},
	})
}

// isDocumentURL reports whether the document of an API is read from a URL.
func isDocumentURL(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// setDocument makes the path of an OpenAPI document absolute.
func (u *Upstream) setDocument(dir string) {
	if u.OpenAPI == "" {
		return
	}
	if !documentScheme.MatchString(u.OpenAPI) {
		u.OpenAPI = reference.Absolute(dir, u.OpenAPI)
	}
	u.Dir = ""
}

// apiKeys returns the keys with a value that only an upstream with an OpenAPI document may have.
func (u Upstream) apiKeys() (names []string) {
	for _, key := range []struct {
		name string
		set  bool
	}{{"variables", len(u.Variables) > 0}, {"query", len(u.Query) > 0}, {"basic", u.Basic.isSet()}} {
		if key.set {
			names = append(names, key.name)
		}
	}
	return names
}

// apiKeyProblems returns a problem of each key that only an upstream with an OpenAPI document may have.
func (u Upstream) apiKeyProblems(at path) (all []problem) {
	if u.OpenAPI != "" {
		return nil
	}
	for _, name := range u.apiKeys() {
		all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf(`%q belongs to an upstream with "openapi"`, name)})
	}
	return all
}

var documentScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// openAPIProblems returns the problems of an upstream with an OpenAPI document. They never show a part of a URL.
func (u Upstream) openAPIProblems(at path) []problem {
	var all []problem
	for name, set := range map[string]bool{"socket": u.Socket != "", "transport": u.Transport != "" && u.Transport != "auto"} {
		if set {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf(`%q belongs to an MCP server, not to an upstream with "openapi"`, name)})
		}
	}
	all = append(all, noNUL(at.To("openapi"), u.OpenAPI)...)
	if documentScheme.MatchString(u.OpenAPI) {
		if parsed, err := url.Parse(u.OpenAPI); err != nil || !isDocumentURL(u.OpenAPI) || parsed.Hostname() == "" {
			all = append(all, problem{at: at.To("openapi"), message: `"openapi" is the path of a file, or a URL that starts with https:// or http://`})
		}
	}
	if u.URL != "" {
		all = append(all, urlProblems(at.To("url"), u.URL)...)
	} else if u.Auth.isSet() {
		all = append(all, problem{at: at.To("auth"), onKey: true, needs: []path{at.To("url")}, message: `"auth" needs the "url" of the API, to which the token is sent`})
	}
	if u.Basic.isSet() && (u.authorization() != "" || u.UsesOAuth()) {
		all = append(all, problem{at: at.To("basic"), onKey: true, message: `"basic" and another way to authenticate would both set the header Authorization; keep one`})
	}
	if u.Basic.isSet() && u.Basic.Username == "" {
		all = append(all, problem{at: at.To("basic"), onKey: true, needs: []path{at.To("basic").To("username")}, message: `"basic" needs a "username"`})
	}
	all = append(all, headerProblems(at.To("headers"), u.Headers)...)
	return append(all, u.authProblems(at)...)
}
