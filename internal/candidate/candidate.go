// Package candidate makes an upstream of a server that a registry, a preset or a person describes. Its main type is
// [Candidate]: a description of the server, and the values that it needs; [Candidate.Entry] makes the entry of upstreams.yaml of the
// values. All texts of a description are untrusted: what becomes part of a command line, a URL or a name has a strict
// form, and no text can refer to a variable, a file or a secret of the user.
package candidate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/hostrule"
	"sallyport/internal/presets"
	"sallyport/internal/registry"
	"sallyport/internal/tool"
)

// Candidate is a server that can become an upstream.
type Candidate struct {
	// Name is the proposed name of the upstream.
	Name string
	// Source is where the description is from; Server is its name there.
	Source, Server string
	// Title, Description, Publisher, Repository and Version are untrusted texts for people.
	Title, Description, Publisher, Repository, Version string
	// Warnings are reasons to look twice, for people.
	Warnings []string
	// Needs are its files, hosts and limits in a sandbox.
	Needs presets.Needs
	// Inputs are the values that a user can give, in the order of the description.
	Inputs []Input

	command string
	args    []argument
	env     []pair
	url     []part
	headers []pair
	sse     bool
	// openAPI is a document, and graphQL a URL, of an HTTP API; grpc is the URL of a gRPC server.
	openAPI, graphQL, grpc string
	// egress are hosts that programs send HTTP requests to.
	egress []string
	// own: a person gave the URL, so it may be one of this machine.
	own bool
	// preset: the texts are Sallyport's own.
	preset bool
	// kind is npm or pypi for a package, oci for an image; index is its registry, "" for the usual one.
	kind, index string
	// image is the reference of a container image, of which command replaces the entry point, and mounts are folders for it.
	image  string
	mounts []mountOption
}

// Input is a value that a user can give.
type Input struct {
	// Name identifies the input: the name of the variable, the flag without dashes, or a word of the description.
	Name string
	// Description is an untrusted text for people.
	Description string
	// Required inputs have no default.
	Required bool
	// Secret values are stored apart from the settings.
	Secret bool
	// Path: the value is a file or folder of this machine. Flag: it is true or false, for an argument without a value.
	Path, Flag bool
	// Repeated inputs can have several values.
	Repeated bool
	Default  string
	// Example is an untrusted example for people.
	Example string
	Choices []string
}

// pair is a variable of the environment, or a header.
type pair struct {
	name  string
	parts []part
}

// argument is an argument of the command, with its flag if it is a named one.
type argument struct {
	flag  string
	parts []part
	// bare: the flag alone is the argument; its input says whether it is given.
	bare bool
}

// part is a text, or the value of an input.
type part struct{ text, input string }

// Remote reports whether the server runs elsewhere.
func (c Candidate) Remote() bool { return len(c.url) > 0 }

// Digest changes with each part of the description.
func (c Candidate) Digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", c))
	return hex.EncodeToString(sum[:12])
}

// Package returns the type of the registry of its package: npm, pypi, or oci for an image; "" for none.
func (c Candidate) Package() string { return c.kind }

// Kinds of packages that cannot be started here, and what to do.
var elsewhere = map[string]string{
	"nuget": "it is a NuGet package, which needs .NET; install it and add its command: sallyport upstreams add NAME -- COMMAND",
	"mcpb":  "it is an MCP bundle for desktop programs; unpack it and add its command: sallyport upstreams add NAME -- COMMAND",
	"cargo": "it is a Rust crate; install it with cargo and add its command: sallyport upstreams add NAME -- COMMAND",
}

// Choice selects one of the ways to reach a server.
type Choice struct {
	// Remote selects the first remote server, Package the first package; with neither, a package that can run here has precedence.
	Remote, Package bool
}

// Of returns the candidate of a server in a registry. The error says for each package and remote why it cannot be used.
func Of(e registry.Entry, choice Choice) (Candidate, error) {
	s := e.Server
	base := Candidate{
		Name: ShortName(s.Name), Source: "the MCP registry", Server: s.Name, Title: s.Title, Description: s.Description, Publisher: publisher(s.Name),
		Repository: s.Repository.URL, Version: s.Version,
	}
	switch status := e.Status(); status {
	case registry.Deleted:
		return base, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s %s was deleted from the registry", s.Name, s.Version), Hint: "look for another one: sallyport search --registry WORDS"}
	case registry.Deprecated:
		base.Warnings = append(base.Warnings, strings.TrimSuffix("its publisher has deprecated it: "+e.Meta.Official.StatusMessage, ": "))
	}
	var reasons []string
	if !choice.Remote {
		for _, p := range s.Packages {
			c, err := base.withPackage(p)
			if err == nil {
				return c, nil
			}
			reasons = append(reasons, fmt.Sprintf("%.20s package: %v", p.RegistryType, err))
		}
	}
	if !choice.Package {
		for _, r := range s.Remotes {
			c, err := base.withRemote(r)
			if err == nil {
				return c, nil
			}
			reasons = append(reasons, "remote: "+err.Error())
		}
	}
	return base, cannotRun(s, reasons)
}

func cannotRun(s registry.Server, reasons []string) error {
	err := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s %s cannot be added:", s.Name, s.Version), Hint: "nothing was changed"}
	if len(reasons) == 0 {
		err.Message += " it has no such package and no such address"
	}
	for _, reason := range reasons[:min(len(reasons), 5)] {
		err.Message += "\n  " + reason
	}
	return err
}

// OfPreset returns the candidate of a preset.
func OfPreset(p presets.Preset, choice Choice) (Candidate, error) {
	c, err := Of(registry.Entry{Server: p.Server}, choice)
	if err != nil {
		return c, err
	}
	c.Name, c.Source, c.Server, c.Publisher, c.Needs = p.ID, "a preset of Sallyport", p.ID, p.Publisher, p.Needs
	c.preset = true
	return c, nil
}

// OfPackage returns the candidate of a package of npm or pypi that no registry of servers describes.
func OfPackage(kind string, info registry.PackageInfo) (Candidate, error) {
	base := Candidate{
		Name: ShortName(info.Name), Source: kind, Server: info.Name, Description: info.Description, Publisher: info.Publisher, Repository: info.Repository, Version: info.Version,
	}
	if info.Deprecated != "" {
		base.Warnings = append(base.Warnings, "its publisher has deprecated it: "+info.Deprecated)
	}
	p := registry.Package{RegistryType: kind, Identifier: info.Name, Version: info.Version}
	if known, ok := presets.OfPackage(kind, info.Name); ok { // its arguments and variables
		for _, described := range known.Server.Packages {
			if described.RegistryType == kind && described.Identifier == info.Name {
				described.Version = info.Version
				p = described
			}
		}
	}
	p.Transport.Type = "stdio"
	return base.withPackage(p)
}

// OfURL returns the candidate of an MCP server at a URL.
func OfURL(address string) (Candidate, error) {
	parsed, err := parseURL(address, false)
	if err != nil {
		return Candidate{}, err
	}
	host := parsed.Hostname()
	return Candidate{Name: hostName(host), Source: "its URL", Server: host, Publisher: host, url: []part{{text: address}}, own: true}, nil
}

// WithAuthorization returns the candidate of an MCP server at a URL with an input for its header Authorization: a URL does not say
// what a server requires. Any other candidate is returned unchanged.
func (c Candidate) WithAuthorization() Candidate {
	if !c.own || !c.Remote() || len(c.Inputs) > 0 {
		return c
	}
	const name = "Authorization"
	c.Inputs = []Input{{Name: name, Description: "The header that goes with each request. Leave it empty if the server requires none, or if one logs in there.", Example: "Bearer TOKEN", Secret: true}}
	c.headers = []pair{{name, []part{{input: name}}}}
	return c
}

// OfDocument returns the candidate of the API that an OpenAPI document describes, a path or a URL.
func OfDocument(document string) (Candidate, error) {
	c := Candidate{Source: "an OpenAPI document", Server: document, openAPI: document}
	at := document
	if strings.Contains(document, "://") {
		parsed, err := parseURL(document, false)
		if err != nil {
			return c, err
		}
		c.Publisher = parsed.Hostname()
		if at = strings.Trim(parsed.Path, "/"); at == "" {
			at = parsed.Hostname()
		}
	}
	at = at[strings.LastIndexAny(at, `/\`)+1:]
	if dot := strings.LastIndexByte(at, '.'); dot > 0 {
		at = at[:dot]
	}
	if c.Name = ShortName(at); c.Publisher != "" && (c.Name == "openapi" || c.Name == "swagger") {
		c.Name = hostName(c.Publisher)
	}
	return c, nil
}

// OfGraphQL returns the candidate of the GraphQL API at a URL.
func OfGraphQL(address string) (Candidate, error) {
	c, err := OfURL(address)
	c.Source, c.url, c.graphQL = "its URL, a GraphQL API", nil, address
	return c, err
}

// OfGRPC returns the candidate of the gRPC server at a URL.
func OfGRPC(address string) (Candidate, error) {
	c, err := OfURL(address)
	c.Source, c.url, c.grpc = "its URL, a gRPC server", nil, address
	return c, err
}

// OfEgress returns the candidate of functions that send HTTP requests of programs to hosts: names with commas between them.
func OfEgress(hosts string) (Candidate, error) {
	c := Candidate{Source: "the gateway", Server: hosts, Description: "HTTP requests of programs"}
	for name := range strings.SplitSeq(hosts, ",") {
		if name = strings.TrimSpace(name); name == "" || slices.Contains(c.egress, name) {
			continue
		}
		if problem := hostrule.Host(name); problem != "" {
			return c, fmt.Errorf("%.100q %s", name, problem)
		}
		c.egress = append(c.egress, name)
	}
	if len(c.egress) == 0 {
		return c, errors.New("there is no host")
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(c.egress[0], "*."), ":")
	c.Name = hostName(first)
	return c, nil
}

// FreeName returns the name, or with a number the first one that is free.
func FreeName(name string, free func(string) bool) string {
	made := name
	for n := 2; !free(made); n++ {
		made = fmt.Sprintf("%s-%d", name, n)
	}
	return made
}

var noise = regexp.MustCompile(`(?i)^(mcp[-_.]server[-_.]|server[-_.]|mcp[-_.])|([-_.]mcp[-_.]server|[-_.]server[-_.]mcp|[-_.]mcp|[-_.]server)$`)

// ShortName returns the name of an upstream for the name of a server or a package: its last part, without the words mcp and server.
func ShortName(name string) string {
	scope, last, scoped := strings.Cut(name, "/")
	if !scoped {
		last = name
	}
	short := noise.ReplaceAllString(last, "")
	if short == "" || strings.EqualFold(short, "mcp") || strings.EqualFold(short, "server") {
		short = strings.TrimPrefix(scope, "@")
		short = short[strings.LastIndexByte(short, '.')+1:]
	}
	return upstreamName(short)
}

var notName = regexp.MustCompile(`[^a-z0-9_-]+`)

// upstreamName returns a text in the form of an upstream's name.
func upstreamName(text string) string {
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-_")
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		name = "server-" + name
	}
	return strings.TrimRight(name[:min(len(name), 40)], "-_")
}

// hostName returns the name of an upstream for a host: its last label but one, or "server" for an address.
func hostName(host string) string {
	if net.ParseIP(host) != nil {
		return "server"
	}
	labels := strings.Split(host, ".")
	if len(labels) < 2 {
		return upstreamName(host)
	}
	return upstreamName(labels[len(labels)-2])
}

// publisher returns the owner of the namespace of a name, which the registry has verified.
func publisher(name string) string {
	namespace, _, _ := strings.Cut(name, "/")
	if owner, ok := strings.CutPrefix(namespace, "io.github."); ok {
		return "the GitHub account " + owner
	}
	labels := strings.Split(namespace, ".")
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return "the owner of " + strings.Join(labels, ".")
}
