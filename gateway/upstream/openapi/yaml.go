package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"gopkg.in/yaml.v3"
)

// parseYAML parses a YAML document. Aliases count as what they stand for.
func parseYAML(data []byte, m *meter) (any, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return nil, err
	}
	if n.Kind != yaml.DocumentNode || len(n.Content) != 1 {
		return nil, errors.New("the file is empty")
	}
	return yamlParser{m, map[*yaml.Node]bool{}}.value(n.Content[0], 0)
}

type yamlParser struct {
	meter *meter
	open  map[*yaml.Node]bool // the aliases around a value
}

func (p yamlParser) value(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, beyond("is nested more than %d levels deep", maxDepth)
	}
	if err := p.meter.node(); err != nil {
		return nil, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		if p.open[n.Alias] {
			return nil, fmt.Errorf("line %d: the alias refers to itself", n.Line)
		}
		p.open[n.Alias] = true
		defer delete(p.open, n.Alias)
		return p.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return p.mapping(n, depth)
	case yaml.SequenceNode:
		l := make([]any, 0, len(n.Content))
		for _, one := range n.Content {
			v, err := p.value(one, depth+1)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		return l, nil
	}
	return scalarOf(n), nil
}

func (p yamlParser) mapping(n *yaml.Node, depth int) (any, error) {
	o := newObject()
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		v, err := p.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.Tag == "!!merge" {
			mergeInto(o, v)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key must be a text", key.Line)
		}
		o.Set(key.Value, v)
	}
	return o, nil
}

// mergeInto applies a merge key (<<), whose members do not replace others.
func mergeInto(o *object, v any) {
	if all, ok := v.([]any); ok {
		for _, one := range all {
			mergeInto(o, one)
		}
		return
	}
	more, _ := v.(*object)
	for _, key := range more.Keys() {
		if !o.Has(key) {
			o.Set(key, more.Get(key))
		}
	}
}

// scalarOf returns the value of a scalar in JSON's terms: a date is a text.
func scalarOf(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		var i int64
		if n.Decode(&i) == nil { // octal, hexadecimal, with underscores
			return json.Number(strconv.FormatInt(i, 10))
		}
	case "!!float":
		var f float64
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		if n.Decode(&f) == nil {
			if data, err := json.Marshal(f); err == nil { // neither infinite nor NaN
				return json.Number(data)
			}
		}
	}
	return n.Value
}
