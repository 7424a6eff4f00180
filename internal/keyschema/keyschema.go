// Package keyschema reads what a JSON Schema says of the keys of a settings file. Its main type is [Node].
package keyschema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// A Node is a part of the schema: the keys of a mapping, the values of other mappings and of lists, defaults.
type Node struct {
	Properties           map[string]Node
	AdditionalProperties json.RawMessage
	Items                json.RawMessage
	AnyOf                []Node
	Required             []string
	Default              json.RawMessage
	// Absent: without the mapping, the defaults of its keys do not count.
	Absent bool `json:"x-absent"`
}

// Owners returns the paths of the mappings that have a key, except for the top level.
func (n Node) Owners(at, word string) (found []string) {
	if _, ok := n.Properties[word]; ok && at != "" {
		found = append(found, at)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		found = append(found, n.Properties[name].Owners(strings.TrimPrefix(at+"."+name, "."), word)...)
	}
	for _, other := range n.AnyOf {
		found = append(found, other.Owners(at, word)...)
	}
	if len(n.AdditionalProperties) > 0 {
		found = append(found, n.Member("\x00").Owners(at+".NAME", word)...)
	}
	if len(n.Items) > 0 {
		found = append(found, n.Item().Owners(at+"[]", word)...)
	}
	return found
}

// Mapping returns the schema of a value that is a mapping: itself, or one of those that it may be.
func (n Node) Mapping() Node {
	for _, other := range n.AnyOf {
		if len(other.Properties) > 0 {
			return other
		}
	}
	return n
}

// Member returns the schema of a member of a mapping.
func (n Node) Member(name string) (member Node) {
	if known, ok := n.Properties[name]; ok {
		return known
	}
	if json.Unmarshal(n.AdditionalProperties, &member) != nil { // false
		return Node{}
	}
	return member
}

// Item returns the schema of an item of a list.
func (n Node) Item() (item Node) {
	if n.Items == nil || json.Unmarshal(n.Items, &item) != nil {
		return Node{}
	}
	return item
}

// Defaults returns the default of a value that the file does not have, nil for none.
func (n Node) Defaults() *yaml.Node {
	if len(n.Properties) == 0 {
		return n.defaultValue()
	}
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		if value := n.Properties[name].Defaults(); value != nil && !n.Absent {
			all.Content = append(all.Content, TextNode(name), value)
		}
	}
	if len(n.Required) > 0 || len(all.Content) == 0 {
		return nil
	}
	return all
}

func (n Node) defaultValue() *yaml.Node {
	if n.Default == nil {
		return nil
	}
	var value yaml.Node
	if yaml.Unmarshal(n.Default, &value) != nil || len(value.Content) != 1 { // JSON is YAML
		return nil
	}
	one := value.Content[0]
	one.Style, one.LineComment = 0, "default"
	return one
}

// TextNode returns a node with a text.
func TextNode(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}
