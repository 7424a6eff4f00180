package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
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
	return slices.Contains([]string{"", "oauth", AuthKey}, u.Auth.Type) && u.authorization() == ""
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

// IsAPI reports whether it is an API with operations that become tools, and no MCP server.
func (u Upstream) IsAPI() bool { return u.OpenAPI+u.asked() != "" }

// asked returns the value of the key of an API that can describe itself, "" for any other.
func (u Upstream) asked() string { return u.GraphQL + u.GRPC }

// documents returns the keys of what describes an API.
func (u Upstream) documents() []setKey {
	return []setKey{{"graphql", u.GraphQL != ""}, {"grpc", u.GRPC != ""}, {"openapi", u.OpenAPI != ""}}
}

// document returns the key and the value of what describes an API.
func (u Upstream) document() (key, value string) {
	return append(namesOfSet(u.documents()...), "")[0], u.OpenAPI + u.asked()
}

// SchemaFile returns the file that describes a GraphQL API or a gRPC server, "" if it is asked.
func (u Upstream) SchemaFile() string {
	if documentScheme.MatchString(u.asked()) {
		return ""
	}
	return u.asked()
}

// setDocument makes the path of what describes an API absolute. The URL of an API that describes itself is its url.
func (u *Upstream) setDocument(dir string) {
	if !u.IsAPI() {
		return
	}
	for _, file := range []*string{&u.OpenAPI, &u.GraphQL, &u.GRPC} {
		if *file != "" && !documentScheme.MatchString(*file) {
			*file = reference.Absolute(dir, *file)
		}
	}
	if u.SchemaFile() == "" && u.URL == "" {
		u.URL = u.asked()
	}
	u.Dir = ""
}

// apiKeys returns the keys with a value that only an upstream that is an API may have.
func (u Upstream) apiKeys() []string {
	return namesOfSet(setKey{"variables", len(u.Variables) > 0}, setKey{"query", len(u.Query) > 0}, setKey{"basic", u.Basic.isSet()})
}

// apiKeyProblems returns a problem of each key that only an upstream that is an API may have.
func (u Upstream) apiKeyProblems(at path) (all []problem) {
	kind, _ := u.document()
	owners := map[string]string{"variables": `"openapi"`, "query": `"openapi" or "graphql"`, "basic": `"openapi", "graphql" or "grpc"`}
	for _, name := range u.apiKeys() {
		if of := owners[name]; !strings.Contains(of, `"`+kind+`"`) {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf("%q belongs to an upstream with %s", name, of)})
		}
	}
	return all
}

var documentScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// apiProblems returns the problems of an upstream that is an API. They never show a part of a URL.
func (u Upstream) apiProblems(at path) []problem {
	var all []problem
	key, _ := u.document()
	for name, set := range map[string]bool{"socket": u.Socket != "", "transport": u.Transport != "" && u.Transport != "auto"} {
		if set {
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf(`%q belongs to an MCP server, not to an upstream with %q`, name, key)})
		}
	}
	all = append(all, append(u.addressProblems(at), u.tlsProblems(at.To("tls"))...)...)
	if u.Basic.isSet() && (u.authorization() != "" || u.UsesOAuth()) {
		all = append(all, problem{at: at.To("basic"), onKey: true, message: `"basic" and another way to authenticate would both set the header Authorization; keep one`})
	}
	if u.Basic.isSet() && u.Basic.Username == "" {
		all = append(all, problem{at: at.To("basic"), onKey: true, needs: []path{at.To("basic").To("username")}, message: `"basic" needs a "username"`})
	}
	all = append(all, headerProblems(at.To("headers"), u.Headers)...)
	return append(all, u.authProblems(at)...)
}

// addressProblems returns the problems of the document of an API and of its URL.
func (u Upstream) addressProblems(at path) []problem {
	key, document := u.document()
	all := noNUL(at.To(key), document)
	if documentScheme.MatchString(document) {
		if parsed, err := url.Parse(document); err != nil || !isDocumentURL(document) || parsed.Hostname() == "" {
			all = append(all, problem{at: at.To(key), message: fmt.Sprintf(`%q is the path of a file, or a URL that starts with https:// or http://`, key)})
		} else if u.asked() != "" && u.URL != document {
			all = append(all, problem{at: at.To("url"), onKey: true, message: fmt.Sprintf(`%q is the URL of the API already; keep one of them, or name a file that describes it`, key)})
		}
	}
	switch {
	case u.asked() != "" && u.URL == "":
		all = append(all, problem{at: at.To(key), onKey: true, needs: []path{at.To("url")}, message: fmt.Sprintf(`%q names a file, so "url" is needed: the URL of the API`, key)})
	case u.URL != "" && u.URL != u.asked():
		all = append(all, urlProblems(at.To("url"), u.URL)...)
	case u.URL == "" && u.Auth.isSet():
		all = append(all, problem{at: at.To("auth"), onKey: true, needs: []path{at.To("url")}, message: `"auth" needs the "url" of the API, to which the token is sent`})
	}
	return all
}
