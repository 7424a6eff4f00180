package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/policy"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Endpoint is a subset of the tools with a URL of its own, /mcp/NAME. For clients and programs there, no other tool exists.
type Endpoint struct {
	// Tools are globs of upstream.tool, such as "erp.*": the tools that exist there. Resources and prompts are those of
	// upstreams with at least one such tool.
	Tools []string
	// Mode is what a client sees there whose URL names no mode; default that of "clients" and "mode" of the file.
	Mode Mode
	// Principals are those that may use it: names of http.tokens, or principals as in the log; default all.
	Principals []string
	// Groups are groups of http.identity.groups that may use it, in addition to the principals; default all.
	Groups []string
}

// ReservedEndpoint is the name that no endpoint can have: /mcp/direct is direct mode.
const ReservedEndpoint = "direct"

// endpointName matches names that are the same in a URL, however it is written.
var endpointName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// ValidEndpoint reports whether an endpoint can have a name.
func ValidEndpoint(name string) bool {
	return name != ReservedEndpoint && endpointName.MatchString(name)
}

// endpointDecoder decodes the key endpoints.
type endpointDecoder struct{ *decoder }

func (d endpointDecoder) endpoints(at path, n *yaml.Node, c *Config) {
	c.Endpoints = map[string]Endpoint{}
	d.Each(at, n, func(at path, name, value *yaml.Node) {
		e := Endpoint{}
		seen := d.Fields(at, value, []key{
			{"tools", d.Texts(&e.Tools)},
			{"mode", d.OneOf((*string)(&e.Mode), modes...)},
			{"principals", d.Texts(&e.Principals)},
			{"groups", d.Texts(&e.Groups)},
		})
		if value.Kind == yaml.MappingNode && !seen["tools"] && !d.Bad(at.Unknown()) {
			d.Fail(at.To("tools"), name, `endpoint %.40q needs "tools", such as ["erp.*"]`, name.Value)
		}
		c.Endpoints[name.Value] = e
	})
}

// warnings returns a warning for each glob of tools that no upstream of the settings can have.
func (d endpointDecoder) warnings(c *Config) (all []yamlstrict.Fault) {
	for _, name := range slices.Sorted(maps.Keys(c.Endpoints)) {
		for i, g := range c.Endpoints[name].Tools {
			if up, _, _ := strings.Cut(g, "."); up == "workflows" {
				continue
			}
			if wrong := c.unknownUpstream(g); wrong != "" {
				all = append(all, faultOf(d.decoder, problem{at: path{"endpoints", name, "tools"}.Item(i), message: wrong}))
			}
		}
	}
	return all
}

// endpointProblems checks the endpoints.
func (c *Config) endpointProblems(at path) (all []problem) {
	for _, name := range slices.Sorted(maps.Keys(c.Endpoints)) {
		under, e := at.To(name), c.Endpoints[name]
		switch {
		case name == ReservedEndpoint:
			all = append(all, problem{at: under, onKey: true, message: "/mcp/direct is direct mode of all tools; choose another name"})
		case !ValidEndpoint(name):
			all = append(all, problem{at: under, onKey: true, message: fmt.Sprintf(`%.40q cannot name an endpoint: a lower-case letter, then lower-case letters, digits, "-" and "_", at most 64`, name)})
		}
		if len(e.Tools) == 0 {
			all = append(all, problem{at: under.To("tools"), fallback: under, message: `an endpoint needs at least one tool, such as "erp.*"`})
		}
		for i, g := range e.Tools {
			if message := policy.CheckGlob(g); message != "" {
				all = append(all, problem{at: under.To("tools").Item(i), message: message})
			}
		}
		all = append(all, oneOfProblem(under.To("mode"), string(e.Mode), append(Modes(), ""))...)
		all = append(all, callerProblems(under, e)...)
	}
	return all
}

// callerProblems checks who may use an endpoint. An empty list would mean all.
func callerProblems(at path, e Endpoint) (all []problem) {
	for _, list := range []struct {
		key   string
		names []string
	}{{"principals", e.Principals}, {"groups", e.Groups}} {
		if list.names != nil && len(list.names) == 0 {
			all = append(all, problem{at: at.To(list.key), message: "an empty list allows nobody; leave the key out for all"})
		}
		for i, name := range list.names {
			switch {
			case strings.TrimSpace(name) == "":
				all = append(all, problem{at: at.To(list.key).Item(i), message: "a name is empty"})
			case strings.HasPrefix(name, "group:"):
				all = append(all, problem{at: at.To(list.key).Item(i), message: fmt.Sprintf(`write %q under "groups"`, strings.TrimPrefix(name, "group:"))})
			}
		}
	}
	return all
}
