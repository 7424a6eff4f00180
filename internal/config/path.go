package config

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// path leads through the mappings of the file: upstreams, memory, env, HOME.
type path []string

func (p path) to(name string) path { return append(slices.Clip(p), name) }

func (p path) item(i int) path { return p.to(fmt.Sprintf("[%d]", i)) }

// unknown is where the keys of a mapping that cannot be read are recorded as bad.
func (p path) unknown() path { return p.to("\x00") }

// key is p as the key of a map.
func (p path) key() string { return strings.Join(p, "\x00/") }

// String writes p as upstreams.memory.args[0].
func (p path) String() string {
	return strings.ReplaceAll(strings.Join(p, "."), ".[", "[")
}

// label names the value at p to someone who sees where it stands.
func (p path) label() string {
	switch {
	case len(p) == 0:
		return "the file"
	case len(p) == 2 && p[0] == "upstreams":
		return fmt.Sprintf("upstream %.40q", p[1])
	case len(p) == 2 && p[0] == "environments":
		return fmt.Sprintf("environment %.40q", p[1])
	case len(p) == 2 && p[0] == "workspaces":
		return fmt.Sprintf("workspace %.40q", p[1])
	case len(p) > 2 && (p[0] == "upstreams" || p[0] == "environments" || p[0] == "workspaces"):
		return fmt.Sprintf("%.80q", p[2:].String())
	}
	return fmt.Sprintf("%.40q", p[len(p)-1])
}

// owner names the upstream, environment or section that p is in.
func (p path) owner() string {
	if len(p) > 1 && p[0] == "upstreams" {
		return fmt.Sprintf("upstream %.40q", p[1])
	}
	if len(p) > 1 && p[0] == "environments" {
		return fmt.Sprintf("environment %.40q", p[1])
	}
	if len(p) > 1 && p[0] == "workspaces" {
		return fmt.Sprintf("workspace %.40q", p[1])
	}
	return p[0]
}

// describe says what sort of value n is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "a date"
	}
	return "a string"
}
