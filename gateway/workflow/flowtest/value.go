package flowtest

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"

	"gopkg.in/yaml.v3"

	"sallyport/internal/yamlstrict"
)

// json reads any value as JSON.
func (r reader) json(into *json.RawMessage) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if !r.checkPlain(at, n) {
			return
		}
		*into, _ = json.Marshal(valueOf(n)) // plain values can be marshaled
	}
}

// object reads a mapping as JSON.
func (r reader) object(into *json.RawMessage) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if r.Kind(at, n, yaml.MappingNode, "a mapping") {
			r.json(into)(at, n)
		}
	}
}

// answers reads an object for each form.
func (r reader) answers(into *map[string]json.RawMessage) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		*into = map[string]json.RawMessage{}
		r.Each(at, n, func(at yamlstrict.Path, key, value *yaml.Node) {
			var answer json.RawMessage
			r.object(&answer)(at, value)
			(*into)[key.Value] = answer
		})
	}
}

// part reads a value for comparison, see [differences].
func (r reader) part(into **yaml.Node, kind yaml.Kind) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		matcher := kind == yaml.ScalarNode && matcherOf(n) != ""
		if !r.Allowed(at, n) || !matcher && !r.Kind(at, n, kind, map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.ScalarNode: "a text"}[kind]) {
			return
		}
		if r.checkPlain(at, n) && r.checkMatchers(at, n) {
			*into = n
		}
	}
}

// checkPlain reports values that JSON does not have, recursively.
func (r reader) checkPlain(at yamlstrict.Path, n *yaml.Node) bool {
	if !r.Allowed(at, n) {
		return false
	}
	good := true
	switch n.Kind {
	case yaml.MappingNode:
		r.Each(at, n, func(at yamlstrict.Path, _, value *yaml.Node) { good = r.checkPlain(at, value) && good })
	case yaml.SequenceNode:
		r.Items(at, n, "a list", func(at yamlstrict.Path, _ int, item *yaml.Node) { good = r.checkPlain(at, item) && good })
	default:
		if f, ok := scalarOf(n).(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			r.Fail(at, n, "%s is not a JSON number", n.Value)
			return false
		}
	}
	return good && !r.Bad(at, at.Unknown())
}

// The matchers: a mapping with only one of these keys is a matcher.
const (
	contains = "$contains" // a text that contains this one
	matches  = "$matches"  // a text that matches the regular expression (RE2)
	anything = "$any"      // true: any value, but it must exist
)

// matcherOf returns the name of the matcher n, "" if it is none.
func matcherOf(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return ""
	}
	switch key := n.Content[0].Value; key {
	case contains, matches, anything:
		return key
	}
	return ""
}

// checkMatchers reports invalid matchers.
func (r reader) checkMatchers(at yamlstrict.Path, n *yaml.Node) bool {
	good := true
	if name := matcherOf(n); name != "" {
		value := n.Content[1]
		if wrong := wrongMatcher(name, value); wrong != "" {
			r.Fail(at.To(name), value, "%s", wrong)
			return false
		}
		return true
	}
	for i, child := range n.Content {
		if n.Kind == yaml.SequenceNode || i%2 == 1 {
			good = r.checkMatchers(at, child) && good
		}
	}
	return good
}

func wrongMatcher(name string, value *yaml.Node) string {
	text, isText := scalarOf(value).(string)
	switch {
	case name == anything && scalarOf(value) != true:
		return name + " must be true, or left out"
	case name != anything && (value.Kind != yaml.ScalarNode || !isText):
		return name + " must be a text"
	case name == matches:
		if _, err := regexp.Compile(text); err != nil {
			return fmt.Sprintf("%s is not a regular expression: %v", name, err)
		}
	}
	return ""
}

// valueOf returns the JSON value of a plain node.
func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		value := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			value[n.Content[i].Value] = valueOf(n.Content[i+1])
		}
		return value
	case yaml.SequenceNode:
		value := make([]any, len(n.Content))
		for i, item := range n.Content {
			value[i] = valueOf(item)
		}
		return value
	}
	return scalarOf(n)
}

// scalarOf returns the value of a scalar: nil, a bool, a number or a string. YAML-only types such as dates are strings.
func scalarOf(n *yaml.Node) any {
	var value any
	switch n.Tag {
	case "!!null", "!!bool", "!!int", "!!float":
		if n.Decode(&value) == nil {
			return value
		}
	}
	return n.Value
}
