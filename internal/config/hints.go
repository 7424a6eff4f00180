package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/keyschema"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// ForeignKey returns the key for the name that other programs use, "" if there is none.
func ForeignKey(word string) string {
	switch word {
	case "servers":
		return "upstreams"
	case "environment", "envs":
		return "env"
	case "dir", "workdir", "workingDirectory":
		return "cwd"
	case "cmd":
		return "command"
	case "arguments":
		return "args"
	case "endpoint", "httpUrl", "serverUrl", "server_url":
		return "url"
	case "http_headers":
		return "headers"
	case "includeTools", "enabledTools", "enabled_tools", "allowedTools":
		return "include"
	case "excludeTools", "disabledTools", "disabled_tools":
		return "exclude"
	}
	return ""
}

// advice is what to do about mistakes in upstreams.yaml that people make.
func advice() yamlstrict.Advice {
	return yamlstrict.Advice{Key: adviseKey, Elsewhere: keyElsewhere, Fits: fitsUpstream, Value: adviseValue}
}

// adviseKey returns the message for an unknown key of a client's settings, or of one at a wrong indentation.
func adviseKey(at path, key, value *yaml.Node) string {
	switch {
	case len(at) == 0 && (key.Value == "mcpServers" || key.Value == "mcp_servers"):
		return fmt.Sprintf("%q is a key of MCP clients; save those settings as a file of their own, and run: sallyport import FILE", key.Value)
	case len(at) == 0 && looksLikeUpstream(value):
		return fmt.Sprintf(`unknown key %.40q; if it is an upstream, indent it below "upstreams:"`, key.Value)
	case isUpstream(at) && key.Value == "type":
		return adviseType(value.Value)
	case isUpstream(at) && key.Value == "enabled":
		return `unknown key "enabled"; write "disabled: true" to turn an upstream off`
	}
	return ""
}

func isUpstream(at path) bool { return len(at) == 2 && at[0] == "upstreams" }

func looksLikeUpstream(n *yaml.Node) bool {
	return yamlstrict.ValueOf(n, "command") != nil || yamlstrict.ValueOf(n, "url") != nil
}

// adviseType returns what to do about the type of a server in the settings of clients.
func adviseType(kind string) string {
	kind = strings.ToLower(kind)
	switch {
	case kind == "stdio" || kind == "local":
		return `unknown key "type"; remove it: an upstream with a "command" uses stdio`
	case kind == "sse":
		return `unknown key "type"; write "transport: sse"`
	case IsHTTPType(kind):
		return `unknown key "type"; remove it: an upstream with a "url" uses HTTP`
	}
	return `unknown key "type"; remove it: "command" or "url" says how to reach the upstream`
}

// IsHTTPType reports whether a client's name of a type, in lower case, is streamable HTTP.
func IsHTTPType(kind string) bool {
	return slices.Contains([]string{"http", "streamable-http", "streamable_http", "streamablehttp", "remote"}, kind)
}

// adviseValue returns what to do about an upstream that is no mapping.
func adviseValue(at path, n *yaml.Node) string {
	if len(at) == 1 && at[0] == "upstreams" && n.Tag == "!!null" {
		return "indent the upstreams below it, or write {}"
	}
	if isUpstream(at) && n.Kind == yaml.ScalarNode {
		return "indent its keys, such as command, below its name"
	}
	return ""
}

// transportKeys are keys of an upstream, each with the keys of transports that do not have it.
var transportKeys = map[string][]string{
	"url": {"command", "tools", "egress"}, "headers": {"command", "tools", "egress"}, "socket": {"command", "tools", "egress"}, "transport": {"command", "tools", "egress"}, "auth": {"command", "tools", "egress"}, "tls": {"command", "tools", "egress"},
	"command": {"url", "openapi", "graphql", "grpc", "tools", "egress"}, "args": {"url", "openapi", "graphql", "grpc", "tools", "egress"}, "env": {"url", "openapi", "graphql", "grpc", "egress"}, "cwd": {"url", "openapi", "graphql", "grpc", "egress"},
	"openapi": {"command", "url", "tools", "graphql", "grpc", "egress"}, "graphql": {"command", "url", "tools", "openapi", "grpc", "egress"}, "grpc": {"command", "url", "tools", "openapi", "graphql", "egress"},
	"variables": {"command", "url", "tools", "grpc", "egress"}, "query": {"command", "url", "tools", "grpc", "egress"}, "basic": {"command", "url", "tools", "egress"}, "tools": {"url", "openapi", "graphql", "grpc", "command", "egress"},
	"egress": {"url", "openapi", "graphql", "grpc", "command", "tools"}, "isolate": {"egress"},
}

// fitsUpstream reports whether a key fits the transport of an upstream.
func fitsUpstream(at path, mapping *yaml.Node, name string) bool {
	has := func(key string) bool { return yamlstrict.ValueOf(mapping, key) != nil }
	api := slices.Contains([]string{"openapi", "graphql", "grpc", "variables", "query", "basic"}, name) && (has("openapi") || has("graphql") || has("grpc"))
	return !isUpstream(at) || api || !slices.ContainsFunc(transportKeys[name], has)
}

// maxElsewhere bounds the mappings that a message names.
const maxElsewhere = 2

// keyElsewhere says which mappings around the one at a path, or inside it, have a key, "" if none has it: those are
// where wrong indentation takes a key from.
func keyElsewhere(at path, word string) string {
	here := pattern(at)
	found := slices.DeleteFunc(KeySchema().Owners("", word), func(owner string) bool { return !around(here, owner) && !around(owner, here) })
	slices.SortStableFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")))
	})
	switch {
	case len(found) == 0:
		return ""
	case len(found) > maxElsewhere:
		return fmt.Sprintf("it is a key of %s and others; check the indentation", strings.Join(found[:maxElsewhere], ", "))
	}
	return fmt.Sprintf("it is a key of %s; check the indentation", strings.Join(found, " and "))
}

// rank puts upstreams before other mappings, as they are what most settings are about.
func rank(owner string) int {
	if owner == "upstreams.NAME" {
		return 0
	}
	return 1
}

// around reports whether the mapping outer, "" for the file, contains the mapping inner.
func around(outer, inner string) bool { return outer == "" || strings.HasPrefix(inner, outer+".") }

var itemNumber = regexp.MustCompile(`\[\d+\]`)

// pattern returns a path with NAME for a member of a named section, and [] for the items of a list.
func pattern(at path) string {
	if len(at) > 1 && namedSections[at[0]] != "" {
		at = slices.Concat(at[:1], path{"NAME"}, at[2:])
	}
	return itemNumber.ReplaceAllString(at.String(), "[]")
}

// misplaced reports a key of an upstream that is indented like the name of one. It returns whether it did.
func misplaced(d *yamlstrict.Decoder, at path, key, value *yaml.Node, keys func() map[string]keyschema.Node) bool {
	if looksLikeUpstream(value) || value.Kind == yaml.MappingNode && len(value.Content) == 0 {
		return false
	}
	if _, isKey := keys()[key.Value]; !isKey {
		return false
	}
	d.Fail(at, key, "%q is a key of an upstream; indent it more than the name of the upstream", key.Value)
	return true
}

// oneProgram reads the command of an upstream: one program, without arguments.
func oneProgram(into *string, d *decoder) reader {
	return func(at path, n *yaml.Node) {
		d.Text(into)(at, n)
		switch {
		case d.Bad(at):
		case commandLine.MatchString(n.Value):
			d.Fail(at, n, "%s is one program, without arguments; write %s", label(at), splitCommand(n.Value))
		default:
			noTilde(d.Decoder, at, n)
		}
	}
}

// commandLine matches a program of PATH with arguments, or a path with options: no name of a program looks like that.
var commandLine = regexp.MustCompile(`^([^\s/\\]+\s+\S|.+\s--?[A-Za-z])`)

// maxShown bounds the part of a value that a message shows.
const maxShown = 80

// splitCommand returns the keys for a command line.
func splitCommand(text string) string {
	words := strings.Fields(text)
	if len(text) > maxShown || strings.ContainsAny(text, "\"'\\$") {
		return fmt.Sprintf("command: %.40s, and its arguments as a list: args: [...]", words[0])
	}
	return fmt.Sprintf("command: %s and args: [%s]", words[0], strings.Join(words[1:], ", "))
}

// noTilde rejects a path that begins with the home folder as a shell writes it.
func noTilde(d *yamlstrict.Decoder, at path, n *yaml.Node) bool {
	rest, ok := strings.CutPrefix(n.Value, "~")
	if !ok || rest != "" && rest[0] != '/' {
		return true
	}
	d.Fail(at, n, `"~" is not the home folder here; write %.60s`, "${HOME}"+rest)
	return false
}

// noBackslash rejects a Windows path in double quotes, in which "\t" is a tab.
func noBackslash(d *yamlstrict.Decoder, at path, n *yaml.Node) {
	if n.Style&yaml.DoubleQuotedStyle != 0 && brokenPath.MatchString(n.Value) {
		d.Fail(at, n, `in double quotes a backslash starts an escape; use single quotes: 'C:\tools'`)
	}
}

// brokenPath matches a Windows path after its first backslash became a part of an escape.
var brokenPath = regexp.MustCompile(`^[A-Za-z]:[\x00-\x1f\x{85}\x{a0}\x{2028}\x{2029}]`)
