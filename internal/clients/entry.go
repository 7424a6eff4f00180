package clients

import (
	"net/url"
	"strings"

	"gopkg.in/yaml.v3"

	"sallyport/internal/weburl"
)

// field is a member of sallyport's entry: a text, a list of texts, a number, a boolean, or fields.
type field struct {
	name  string
	value any
}

// fields are the members of an entry, in their order.
type fields []field

// MarshalYAML keeps the order.
func (all fields) MarshalYAML() (any, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range all {
		var key, value yaml.Node
		key.SetString(f.name)
		if err := value.Encode(f.value); err != nil {
			return nil, err
		}
		node.Content = append(node.Content, &key, &value)
	}
	return node, nil
}

// decoded returns the fields as a decoder of the file returns them.
func (all fields) decoded() map[string]any {
	m := map[string]any{}
	for _, f := range all {
		switch v := f.value.(type) {
		case fields:
			m[f.name] = v.decoded()
		case []string:
			list := make([]any, len(v))
			for i, text := range v {
				list[i] = text
			}
			m[f.name] = list
		default:
			m[f.name] = v
		}
	}
	return m
}

// callTimeout is how long a client waits for the answer to a call, in seconds, where it has a key for that: programs can take long.
const callTimeout = 300

// entry returns sallyport's entry in decoded form.
func (c Client) entry(self Self) map[string]any { return c.fields(self).decoded() }

// fields returns sallyport's entry.
func (c Client) fields(self Self) fields {
	switch {
	case self.URL != "":
		return c.remoteFields(self)
	case c.Name == "goose":
		return fields{{"name", OurName}, {"type", "stdio"}, {"enabled", true}, {"cmd", self.Command}, {"args", self.Args}, {"timeout", callTimeout}}
	}
	var all fields
	for _, pair := range c.extra {
		all = append(all, field{pair[0], pair[1]})
	}
	return append(all, field{"command", self.Command}, field{"args", self.Args})
}

// remoteForm is how a client writes an entry with a URL.
type remoteForm struct {
	// url is the key of the URL, "" if the client has no such entries; kind is the value of the key type, "" for no such key.
	url, kind string
	// variable is how a header reads the environment variable NAME, "" if it cannot.
	variable string
}

// TokenMark is what a person replaces by a token, in the entry of a client that reads no variables.
const TokenMark = "TOKEN"

// NeedsToken reports whether the entry for a gateway contains [TokenMark].
func (c Client) NeedsToken(self Self) bool {
	return self.URL != "" && self.TokenVariable != "" && c.remote.variable == "" && c.Name != "codex"
}

// remoteFields returns the entry of a gateway over HTTP.
func (c Client) remoteFields(self Self) fields {
	if c.remote.url == "" {
		return c.proxyFields(self)
	}
	var all fields
	if c.Name == "goose" {
		all = fields{{"name", OurName}, {"enabled", true}, {"timeout", callTimeout}}
	}
	if c.remote.kind != "" {
		all = append(all, field{"type", c.remote.kind})
	}
	all = append(all, field{c.remote.url, self.URL})
	if c.Name == "codex" {
		return append(all, codexFields(self)...)
	}
	if self.TokenVariable == "" {
		return all
	}
	if c.Name == "goose" {
		all = append(all, field{"env_keys", []string{self.TokenVariable}})
	}
	token := TokenMark
	if c.remote.variable != "" {
		token = strings.Replace(c.remote.variable, "NAME", self.TokenVariable, 1)
	}
	return append(all, field{"headers", fields{{"Authorization", "Bearer " + token}}})
}

// codexFields returns what Codex has in addition to the URL.
func codexFields(self Self) fields {
	all := fields{{"tool_timeout_sec", callTimeout}}
	if self.TokenVariable != "" {
		all = append(fields{{"bearer_token_env_var", self.TokenVariable}}, all...)
	}
	return all
}

// remoteProxy is an npm package with a server over stdio that connects to a URL.
const remoteProxy = "mcp-remote"

// proxyFields returns the entry for a client that only starts commands.
func (c Client) proxyFields(self Self) fields {
	args := []string{"-y", remoteProxy, self.URL}
	if u, err := url.Parse(self.URL); err == nil && u.Scheme == "http" && !weburl.IsLoopback(u.Hostname()) {
		args = append(args, "--allow-http")
	}
	if self.TokenVariable == "" {
		return fields{{"command", "npx"}, {"args", args}}
	}
	args = append(args, "--header", "Authorization:${AUTHORIZATION}") // no space: Claude Desktop on Windows splits arguments at it
	return fields{{"command", "npx"}, {"args", args}, {"env", fields{{"AUTHORIZATION", "Bearer " + TokenMark}}}}
}
