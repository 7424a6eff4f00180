package config

import (
	glob "path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sallyport/internal/versions"
)

// Mode is what a client sees of the gateway.
type Mode string

// The modes.
const (
	// ModeCode shows search_tools and execute_code.
	ModeCode Mode = "code"
	// ModeDirect shows the tools, resources and prompts of the upstreams themselves.
	ModeDirect Mode = "direct"
	// ModeSearch shows search_tools, which finds tools with their schemas, and call_tool, which calls one.
	ModeSearch Mode = "search"
)

var modes = []string{string(ModeCode), string(ModeDirect), string(ModeSearch)}

// Modes returns all modes.
func Modes() []string { return slices.Clone(modes) }

// ClientMode is the mode of clients by what they report of themselves in initialize. A client can report anything: it
// selects what a client sees, and is no restriction.
type ClientMode struct {
	// Name is a glob for the client's name, such as "codex*"; case is ignored.
	Name string
	// Versions are conditions that a version must meet, such as ">=0.40 <1"; "" is any. Only the numbers before a "-" or "+"
	// count.
	Versions string
	// Mode is what these clients see.
	Mode Mode
}

// ModeOf returns the mode of a client: that of the first entry of Clients that matches, "" for none.
func (c *Config) ModeOf(name, version string) Mode {
	for _, one := range c.Clients {
		if one.matches(name, version) {
			return one.Mode
		}
	}
	return ""
}

func (c ClientMode) matches(name, version string) bool {
	if ok, err := glob.Match(strings.ToLower(c.Name), strings.ToLower(name)); err != nil || !ok {
		return false
	}
	conditions, err := versions.Parse(c.Versions)
	return err == nil && conditions.Hold(version)
}

// clientDecoder decodes the key clients.
type clientDecoder struct{ *decoder }

func (d clientDecoder) mode(at path, n *yaml.Node, c *ClientMode) {
	seen := d.Fields(at, n, []key{
		{"name", d.Text(&c.Name)},
		{"versions", d.Text(&c.Versions)},
		{"mode", d.OneOf((*string)(&c.Mode), modes...)},
	})
	for _, required := range []string{"name", "mode"} {
		if n.Kind == yaml.MappingNode && !seen[required] && !d.Bad(at.Unknown()) {
			d.Fail(at, n, "the key %q is missing", required)
		}
	}
}

// clientProblems checks the modes.
func (c *Config) clientProblems() (all []problem) {
	all = append(all, oneOfProblem(path{"mode"}, string(c.Mode), append(Modes(), ""))...)
	for i, one := range c.Clients {
		at := path{"clients"}.Item(i)
		if _, err := glob.Match(one.Name, ""); err != nil {
			all = append(all, problem{at: at.To("name"), message: `this is not a glob for a name, such as "codex*"`})
		}
		if _, err := versions.Parse(one.Versions); err != nil {
			all = append(all, problem{at: at.To("versions"), message: err.Error() + "; conditions are separated by spaces"})
		}
		all = append(all, oneOfProblem(at.To("mode"), string(one.Mode), modes)...)
	}
	return all
}
