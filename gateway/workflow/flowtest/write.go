package flowtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// flow writes a value as YAML on one line.
func flow(v any) string {
	n := nodeOf(v)
	inline(n)
	return strings.TrimSuffix(string(encodeYAML(n)), "\n")
}

// encodeYAML returns a node as YAML, indented by two.
func encodeYAML(n *yaml.Node) []byte {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return fmt.Appendf(nil, "# %v", err)
	}
	return out.Bytes()
}

// nodeOf returns a node for a JSON value. Mappings are sorted by key.
func nodeOf(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			put(n, key, nodeOf(v[key]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, nodeOf(item))
		}
		return n
	case *orderedMap:
		return &v.node
	case string:
		return textNode(v)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: numberTag(v.String()), Value: v.String()}
	}
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		return textNode(fmt.Sprint(v))
	}
	return n
}

// numberTag returns the YAML tag of a JSON number.
func numberTag(digits string) string {
	if strings.ContainsAny(digits, ".eE") {
		return "!!float"
	}
	return "!!int"
}

// textNode returns a node for a string: as a literal block for several lines if possible, quoted if needed.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	hidden := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	switch {
	case strings.ContainsFunc(text, hidden):
		n.Style = yaml.DoubleQuotedStyle
	case strings.Contains(strings.TrimRight(text, "\n"), "\n") && !strings.Contains(text, " \n"):
		n.Style = yaml.LiteralStyle
	case strings.Contains(text, "\n"):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// inline sets the styles of a node so that it is written on one line.
func inline(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		n.Style = yaml.FlowStyle
	case yaml.ScalarNode:
		if n.Style == yaml.LiteralStyle {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for _, child := range n.Content {
		inline(child)
	}
}

// put adds a member to a mapping.
func put(mapping *yaml.Node, key string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, textNode(key), value)
}

// decodeJSON decodes JSON with numbers as json.Number; nil if it is invalid.
func decodeJSON(data []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return nil
	}
	return value
}
