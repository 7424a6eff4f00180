package lint

import (
	"encoding/json"
	"slices"
	"strings"

	"sallyport/internal/expr"
	"sallyport/internal/jsontype"
	"sallyport/internal/tool"
)

// The limits for reading a schema, which may be from an upstream.
const (
	maxSchema = 5000 // parts
	maxDepth  = 40
)

// shapeOf converts a JSON Schema to a shape, nil if that is not possible.
func shapeOf(schema json.RawMessage) *expr.Shape {
	if len(schema) == 0 {
		return nil
	}
	root, err := expr.Decode(schema)
	if err != nil {
		return nil
	}
	r := reader{root: root, left: maxSchema, known: map[string]*expr.Shape{}}
	return r.shape(root, 0)
}

// reader converts one schema.
type reader struct {
	root  any
	left  int
	known map[string]*expr.Shape // by $ref
}

func (r *reader) shape(schema any, depth int) *expr.Shape {
	s, ok := schema.(map[string]any)
	if r.left--; !ok || r.left < 0 || depth > maxDepth {
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		return r.ref(ref, depth)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if branches, ok := s[key].([]any); ok {
			return r.oneOf(branches, depth)
		}
	}
	if parts, ok := s["allOf"].([]any); ok {
		return r.allOf(s, parts, depth)
	}
	switch typeOf(s) {
	case "object":
		return r.object(s, depth)
	case "array":
		return &expr.Shape{Type: expr.List, Elem: r.items(s, depth)}
	case "string":
		return &expr.Shape{Type: expr.String}
	case "integer":
		return &expr.Shape{Type: expr.Int}
	case "number":
		return &expr.Shape{Type: expr.Double}
	case "boolean":
		return &expr.Shape{Type: expr.Bool}
	}
	return nil
}

// typeOf returns the only type that a schema allows besides null, "" for none or several.
func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		t = slices.DeleteFunc(slices.Clone(t), func(v any) bool { return v == "null" })
		if len(t) == 1 {
			name, _ := t[0].(string)
			return name
		}
		return ""
	}
	if s["type"] == nil && s["properties"] != nil {
		return "object"
	}
	return ""
}

// ref follows a reference within the schema. A cycle returns the shape that is being built.
func (r *reader) ref(ref string, depth int) *expr.Shape {
	if known, ok := r.known[ref]; ok {
		return known
	}
	at, ok := r.root, strings.HasPrefix(ref, "#")
	for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if ref == "#" || !ok {
			break
		}
		var object map[string]any
		if object, ok = at.(map[string]any); ok {
			at, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)], true
		}
	}
	if !ok {
		return nil
	}
	made := &expr.Shape{Type: expr.Any}
	r.known[ref] = made
	if found := r.shape(at, depth+1); found != nil {
		*made = *found
	}
	return made
}

// oneOf returns the shape of the only branch besides null.
func (r *reader) oneOf(branches []any, depth int) *expr.Shape {
	branches = slices.DeleteFunc(slices.Clone(branches), func(b any) bool {
		s, ok := b.(map[string]any)
		return ok && s["type"] == "null"
	})
	if len(branches) != 1 {
		return nil
	}
	return r.shape(branches[0], depth+1)
}

// allOf merges the members of several objects.
func (r *reader) allOf(s map[string]any, parts []any, depth int) *expr.Shape {
	out := &expr.Shape{Type: expr.Map}
	if s["properties"] != nil {
		parts = append(slices.Clone(parts), map[string]any{"properties": s["properties"], "required": s["required"]})
	}
	for _, part := range parts {
		one := r.shape(part, depth+1)
		if one == nil || one.Type != expr.Map || one.Elem != nil {
			return nil
		}
		out.Fields, out.Open = append(out.Fields, one.Fields...), out.Open || one.Open
	}
	return out
}

func (r *reader) object(s map[string]any, depth int) *expr.Shape {
	out := &expr.Shape{Type: expr.Map}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for name, property := range properties {
		out.Fields = append(out.Fields, expr.Field{Name: name, Optional: !slices.Contains(required, any(name)), Shape: r.shape(property, depth+1)})
	}
	slices.SortFunc(out.Fields, func(a, b expr.Field) int { return strings.Compare(a.Name, b.Name) })
	more, said := s["additionalProperties"]
	out.Open = said && more != false || s["patternProperties"] != nil || !said && len(out.Fields) == 0
	if len(out.Fields) == 0 && said {
		out.Elem = r.shape(more, depth+1)
	}
	return out
}

func (r *reader) items(s map[string]any, depth int) *expr.Shape {
	if s["prefixItems"] != nil {
		return nil
	}
	return r.shape(s["items"], depth+1)
}

// observedShape converts an observed shape of results, to which other results may add members.
func observedShape(s *jsontype.Shape) *expr.Shape {
	if s == nil || s.Any {
		return nil
	}
	switch s.Kinds &^ jsontype.Null {
	case jsontype.Bool:
		return &expr.Shape{Type: expr.Bool}
	case jsontype.Int:
		return &expr.Shape{Type: expr.Int}
	case jsontype.Number, jsontype.Number | jsontype.Int:
		return &expr.Shape{Type: expr.Double}
	case jsontype.String:
		return &expr.Shape{Type: expr.String}
	case jsontype.List:
		return &expr.Shape{Type: expr.List, Elem: observedShape(s.Elem)}
	case jsontype.Object:
		out := &expr.Shape{Type: expr.Map, Open: true, Elem: observedShape(s.Values)}
		for _, f := range s.Fields {
			out.Fields = append(out.Fields, expr.Field{Name: f.Name, Optional: f.Optional, Shape: observedShape(&f.Shape)})
		}
		return out
	}
	return nil
}

// resultOf returns the declared or observed shape of a tool's results, nil if unknown.
func resultOf(t *tool.Tool) *expr.Shape {
	schema, _ := t.ResultSchema()
	if declared := shapeOf(schema); declared != nil {
		return declared
	}
	if t.Observed != nil {
		return observedShape(&t.Observed.Shape)
	}
	return nil
}
