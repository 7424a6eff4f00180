package config

import (
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// transportProblems returns problems of keys that do not fit the upstream's transport.
func (u Upstream) transportProblems(at path) []problem {
	command, address := at.To("command"), at.To("url")
	alone := func(name, of string) problem {
		return problem{at: at.To(name), onKey: true, message: fmt.Sprintf("%q belongs to an upstream with a %q", name, of)}
	}
	all := u.apiKeyProblems(at)
	switch {
	case u.IsAPI() && u.Command != "" || len(namesOfSet(u.documents()...)) > 1:
		key, _ := u.document()
		return []problem{{at: at.To(key), onKey: true, message: fmt.Sprintf(`%s has %q and something else to connect to; keep one of them`, label(at), key)}}
	case u.hasMoreThanTools():
		return []problem{{at: at.To(u.toolsKey()), onKey: true, message: fmt.Sprintf(`%s has %q and something else to connect to; keep one of them`, label(at), u.toolsKey())}}
	case !u.HasProcess() && u.URL == "" && !u.InProcess():
		return []problem{{at: at, onKey: true, needs: []path{at.Unknown(), command, address, at.To("openapi"), at.To("graphql"), at.To("grpc"), at.To("tools"), at.To("egress")},
			message: fmt.Sprintf(`%s needs a "command" to start, the "url" of a server, the document of an API ("openapi"), a "graphql" API, a "grpc" server, "tools" that are programs, or "egress" to hosts`, label(at))}}
	case u.Command != "" && u.URL != "":
		return []problem{{at: address, onKey: true, message: fmt.Sprintf(`%s has a "command" and a "url"; keep one of them`, label(at))}}
	}
	for _, key := range u.strangeKeys() {
		all = append(all, alone(key[0], key[1]))
	}
	return all
}

// strangeKeys returns the keys with a value that do not fit what the upstream is, each with the key that they belong to.
func (u Upstream) strangeKeys() (keys [][2]string) {
	process, web := u.processKeys(), u.httpKeys()
	switch {
	case u.URL != "" || u.IsAPI():
		web = nil
	case u.Egress != nil:
	case len(u.Tools) > 0:
		process = slices.DeleteFunc(process, func(name string) bool { return name != "args" })
	default:
		process = nil
	}
	for _, name := range web {
		keys = append(keys, [2]string{name, "url"})
	}
	for _, name := range process {
		keys = append(keys, [2]string{name, "command"})
	}
	return keys
}

// toolsKey returns the key of tools that the gateway has, "" for an upstream that has its own.
func (u Upstream) toolsKey() string {
	switch {
	case u.Egress != nil:
		return "egress"
	case len(u.Tools) > 0:
		return "tools"
	}
	return ""
}

// hasMoreThanTools reports whether an upstream with tools of the gateway has something else to connect to, or both kinds of them.
func (u Upstream) hasMoreThanTools() bool {
	return u.toolsKey() != "" && (u.Command+u.URL != "" || u.IsAPI() || len(u.Tools) > 0 && u.Egress != nil)
}

// InProcess reports whether the gateway itself serves its tools.
func (u Upstream) InProcess() bool { return u.IsAPI() || u.toolsKey() != "" }

// HasProcess reports whether its server is a process of this machine: a command, or the program of an image.
func (u Upstream) HasProcess() bool {
	return u.Command != "" || u.Isolate != nil && u.Isolate.Image != "" && u.URL == "" && !u.IsAPI() && u.toolsKey() == ""
}

// setKey is a key of an upstream, and whether it has a value.
type setKey struct {
	name string
	set  bool
}

func namesOfSet(keys ...setKey) (names []string) {
	for _, key := range keys {
		if key.set {
			names = append(names, key.name)
		}
	}
	return names
}

// processKeys returns the keys with a value that only an upstream with a process may have.
func (u Upstream) processKeys() []string {
	return namesOfSet(setKey{"args", len(u.Args) > 0}, setKey{"env", len(u.Env) > 0}, setKey{"cwd", u.Dir != ""}, setKey{"isolate", u.Isolate != nil}, setKey{"instances", u.Instances == InstancesOne})
}

// httpKeys returns the keys with a value that only an upstream with a URL may have.
func (u Upstream) httpKeys() []string {
	return namesOfSet(setKey{"headers", len(u.Headers) > 0}, setKey{"socket", u.Socket != ""}, setKey{"transport", u.Transport != "" && u.Transport != "auto"}, setKey{"tls", u.TLS.IsSet()}, setKey{"auth", u.Auth.isSet()})
}

// stdioProblems returns problems of values that the operating system would refuse or truncate.
func (u Upstream) stdioProblems(at path) []problem {
	all := noNUL(at.To("command"), u.Command)
	for i, arg := range u.Args {
		all = append(all, noNUL(at.To("args").Item(i), arg)...)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Env)) {
		under := at.To("env").To(name)
		if name == "" || strings.ContainsAny(name, "=\x00") {
			all = append(all, problem{at: under, onKey: true, message: fmt.Sprintf(`%.40q cannot name a variable: it is empty or has a "="`, name)})
		}
		all = append(all, noNUL(under, u.Env[name])...)
	}
	if u.Dir != "" && !filepath.IsAbs(u.Dir) {
		all = append(all, problem{at: at.To("cwd"), message: "the directory must be absolute"})
	}
	return append(all, noNUL(at.To("cwd"), u.Dir)...)
}

func noNUL(at path, value string) []problem {
	if !strings.ContainsRune(value, 0) {
		return nil
	}
	return []problem{{at: at, message: label(at) + " has a NUL byte, which no process can be given"}}
}

// httpProblems returns the problems of an HTTP upstream. They never show a part of the URL, which may hold a token.
func (u Upstream) httpProblems(at path) []problem {
	all := urlProblems(at.To("url"), u.URL)
	all = append(all, oneOfProblem(at.To("transport"), u.Transport, transports)...)
	all = append(all, u.socketProblems(at.To("socket"))...)
	all = append(all, u.tlsProblems(at.To("tls"))...)
	all = append(all, headerProblems(at.To("headers"), u.Headers)...)
	return append(all, u.authProblems(at)...)
}

func urlProblems(at path, text string) []problem {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return []problem{{at: at, message: `"url" is not a URL`}}
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return []problem{{at: at, message: `"url" must start with https:// or http://`}}
	case parsed.Hostname() == "":
		return []problem{{at: at, message: `"url" names no host`}}
	}
	return nil
}

// maxSocket is the longest path of a Unix socket on macOS, the system with the lowest limit.
const maxSocket = 103

func (u Upstream) socketProblems(at path) []problem {
	switch {
	case u.Socket == "":
		return nil
	case !filepath.IsAbs(u.Socket):
		return []problem{{at: at, message: "the path of the socket must be absolute"}}
	case len(u.Socket) > maxSocket:
		return []problem{{at: at, message: fmt.Sprintf("the path of a socket can have %d bytes at most, with its directory", maxSocket)}}
	}
	return noNUL(at, u.Socket)
}

func headerProblems(at path, headers Secrets) []problem {
	var all []problem
	seen := map[string]string{}
	for _, name := range sortedKeys(headers) {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		other, twice := seen[canonical]
		seen[canonical] = name
		switch {
		case !headerName.MatchString(name):
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf("%.40q cannot name a header", name)})
		case twice:
			all = append(all, problem{at: at.To(name), onKey: true, message: fmt.Sprintf("headers %.40q and %.40q are the same; keep one", other, name)})
		case strings.ContainsFunc(headers[name], control):
			all = append(all, problem{at: at.To(name), message: fmt.Sprintf("header %.40q has a control character in its value, perhaps a newline at its end", name)})
		}
	}
	return all
}

func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
