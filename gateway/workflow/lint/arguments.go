package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/argcheck"
	"sallyport/internal/expr"
	"sallyport/internal/suggest"
)

// parameters are the arguments of a tool or the inputs of a workflow.
type parameters struct {
	of       string // "memory.read_graph", for messages
	what     string // "argument", "input"
	names    []string
	required []string
	schemas  map[string]json.RawMessage
	open     bool // others are allowed, without a warning
	closed   bool // others are an error
}

// toolParameters returns the parameters of a tool's input schema.
func toolParameters(of string, input json.RawMessage) parameters {
	p := parameters{of: of, what: "argument", schemas: map[string]json.RawMessage{}}
	var keywords map[string]json.RawMessage
	if json.Unmarshal(input, &keywords) != nil {
		p.open = true
		return p
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(keywords["properties"], &properties)
	_ = json.Unmarshal(keywords["required"], &p.required)
	for name, schema := range properties {
		p.schemas[name] = withDefinitions(schema, keywords)
	}
	p.names = slices.Sorted(maps.Keys(properties))
	more, said := keywords["additionalProperties"]
	p.closed = string(more) == "false"
	p.open = said && !p.closed
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"} {
		p.open = p.open || keywords[key] != nil
	}
	return p
}

// withDefinitions returns a member's schema with the definitions of root, so that its references resolve.
func withDefinitions(schema json.RawMessage, root map[string]json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil {
		return schema
	}
	for _, key := range []string{"$defs", "definitions", "$schema"} {
		if root[key] != nil {
			object[key] = root[key]
		}
	}
	out, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return out
}

// shape returns the shape of an object of all parameters.
func (p parameters) shape() *expr.Shape {
	out := &expr.Shape{Type: expr.Map, Open: !p.closed}
	for _, name := range p.names {
		out.Fields = append(out.Fields, expr.Field{Name: name, Optional: !slices.Contains(p.required, name), Shape: shapeOf(p.schemas[name])})
	}
	return out
}

// inputParameters returns the inputs of a workflow as parameters.
func inputParameters(d *spec.Definition) parameters {
	p := parameters{of: "workflow " + d.Name, what: "input", schemas: map[string]json.RawMessage{}, closed: true}
	for _, in := range d.Inputs {
		name := in.Name.Text
		p.names = append(p.names, name)
		p.schemas[name] = in.Schema
		if in.Default == nil && !in.Optional {
			p.required = append(p.required, name)
		}
	}
	return p
}

// argChecker checks values and expressions against schemas.
type argChecker struct{ *checker }

// arguments checks the arguments of a call. at is the position of the callee's name.
func (c argChecker) arguments(in template.Scope, with spec.Value, p parameters, at spec.Pos) {
	if with.Kind != spec.Map && with.Kind != spec.None {
		switch got := c.value(in, with); {
		case isUnknown(got):
		case got.Type != expr.Map:
			c.errorf(with.Pos, "%s takes %ss by name, and this is of type %s", p.of, p.what, got.Type)
		default:
			c.compare(with, got, p.shape(), "what "+p.of+" takes", 0)
		}
		return
	}
	given := map[string]bool{}
	for _, m := range with.Members {
		given[m.Name.Text] = true
		c.argument(in, m, p)
	}
	for _, name := range p.required {
		if !given[name] {
			c.errorf(at, "%s needs the %s %s%s", p.of, p.what, name, describe(p.schemas[name]))
		}
	}
}

// describe returns ", of type T" for a missing parameter, "" if the type is unknown.
func describe(schema json.RawMessage) string {
	if s := shapeOf(schema); !isUnknown(s) {
		return fmt.Sprintf(", of type %s", s.Type)
	}
	return ""
}

func (c argChecker) argument(in template.Scope, m spec.Member, p parameters) {
	name := m.Name.Text
	schema, known := p.schemas[name]
	switch {
	case known:
		c.checkSchema(in, m.Value, schema, fmt.Sprintf("the %s %s of %s", p.what, name, p.of))
		return
	case !p.open:
		c.unknown(m, p)
	}
	c.value(in, m.Value)
}

func (c argChecker) unknown(m spec.Member, p parameters) {
	message := noSuch(p.what, m.Name.Text, p.names, p.of+" takes none")
	if p.closed || suggest.Of(m.Name.Text, p.names) != "" {
		c.errorf(m.Name.Pos, "%s: %s", p.of, message)
		return
	}
	c.warnf(m.Name.Pos, "%s: %s", p.of, message)
}

// checkSchema checks a constant value against a schema, and a value with expressions by type.
func (c argChecker) checkSchema(in template.Scope, v spec.Value, schema json.RawMessage, what string) {
	fixed, ok := v.Plain()
	if !ok {
		c.match(in, v, shapeOf(schema), what, 0)
		return
	}
	data, err := json.Marshal(fixed)
	if err != nil {
		return
	}
	for _, m := range argcheck.Explain(schema, data) {
		c.errorf(at(v, m.At).Pos, "%s: %s", what, m.Message)
	}
}

// at follows a path into a value as far as possible.
func at(v spec.Value, path []string) spec.Value {
	for _, step := range path {
		n, err := strconv.Atoi(step)
		i := slices.IndexFunc(v.Members, func(m spec.Member) bool { return m.Name.Text == step })
		switch {
		case v.Kind == spec.List && err == nil && n >= 0 && n < len(v.Items):
			v = v.Items[n]
		case i >= 0:
			v = v.Members[i].Value
		default:
			return v
		}
	}
	return v
}

// match compares the type of a value with a shape, recursively.
func (c argChecker) match(in template.Scope, v spec.Value, want *expr.Shape, what string, depth int) {
	if isUnknown(want) || depth > maxDepth {
		c.value(in, v)
		return
	}
	switch {
	case v.Kind == spec.List && want.Type == expr.List:
		for _, item := range v.Items {
			c.match(in, item, want.Elem, "an item of "+what, depth+1)
		}
	case v.Kind == spec.Map && want.Type == expr.Map:
		c.members(in, v, want, what, depth)
	default:
		if b := c.addProblems(template.Compile(in, v)); b != nil {
			c.compare(v, b.Shape(), want, what, depth)
		}
	}
}

func (c argChecker) members(in template.Scope, v spec.Value, want *expr.Shape, what string, depth int) {
	given := &expr.Shape{Type: expr.Map}
	for _, m := range v.Members {
		wanted, known := want.Field(m.Name.Text)
		if !known && !want.Open {
			c.warnf(m.Name.Pos, "%s: %s", what, noSuch("member", m.Name.Text, want.Names(), "it has none"))
		}
		c.match(in, m.Value, wanted, m.Name.Text+" of "+what, depth+1)
		given.Fields = append(given.Fields, expr.Field{Name: m.Name.Text})
	}
	c.checkMissing(v, given, want, what)
}

// compare compares the shape of an expression's value with the wanted shape.
func (c argChecker) compare(v spec.Value, got, want *expr.Shape, what string, depth int) {
	if isUnknown(got) || isUnknown(want) || depth > maxDepth {
		return
	}
	if got.Type != want.Type && !(isNumber(got) && isNumber(want)) {
		c.errorf(v.Pos, "%s is of type %s, and this is of type %s%s", what, want.Type, got.Type, conversionHint(v, got, want))
		return
	}
	if got.Type == expr.List {
		c.compare(v, got.Elem, want.Elem, "an item of "+what, depth+1)
	}
	for _, f := range got.Fields {
		if wanted, known := want.Field(f.Name); known {
			c.compare(v, f.Shape, wanted, f.Name+" of "+what, depth+1)
		} else if !want.Open {
			c.warnf(v.Pos, "%s: %s", what, noSuch("member", f.Name, want.Names(), "it has none"))
		}
	}
	if got.Type == expr.Map && !got.Open && len(got.Fields) > 0 {
		c.checkMissing(v, got, want, what)
	}
}

// isUnknown reports whether a shape is unknown.
func isUnknown(s *expr.Shape) bool { return s == nil || s.Type == expr.Any }

// checkMissing reports missing required members.
func (c argChecker) checkMissing(v spec.Value, got, want *expr.Shape, what string) {
	for _, f := range want.Fields {
		if !f.Optional && !slices.Contains(got.Names(), f.Name) {
			c.errorf(v.Pos, "%s needs the member %s", what, f.Name)
		}
	}
}

func isNumber(s *expr.Shape) bool { return s.Type == expr.Int || s.Type == expr.Double }

// conversionHint returns a hint how to convert one type to the other, "" for none.
func conversionHint(v spec.Value, got, want *expr.Shape) string {
	switch {
	case want.Type == expr.String:
		return "; text(...) makes a text of it"
	case got.Type == expr.String && v.Kind == spec.String && !strings.HasPrefix(v.Text.Text, "${{"):
		if strings.Contains(v.Text.Text, "${{") {
			return "; it is a text because it has more than one expression"
		}
		return ""
	case got.Type == expr.String && want.Type == expr.Int:
		return "; int(...) makes a number of it"
	case got.Type == expr.String:
		return "; parse_json(...) reads a text that is JSON"
	case want.Type == expr.List:
		return "; [...] makes a list of it"
	}
	return ""
}
