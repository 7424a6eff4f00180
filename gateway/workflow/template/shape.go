package template

import (
	"maps"
	"slices"

	"sallyport/internal/expr"
)

// Shape returns the shape of the value, nil if unknown.
func (b *Binding) Shape() *expr.Shape { return b.root.shape() }

// ConstantValue returns the value if it has no expressions.
func (b *Binding) ConstantValue() (value any, ok bool) {
	if !b.Constant() {
		return nil, false
	}
	return b.root.fixed, true
}

func (n *node) shape() *expr.Shape {
	switch {
	case n.program != nil:
		return n.program.Shape()
	case n.join != nil:
		return &expr.Shape{Type: expr.String}
	case n.items != nil:
		return &expr.Shape{Type: expr.List}
	case n.members != nil:
		out := &expr.Shape{Type: expr.Map}
		for i := range n.members {
			m := &n.members[i]
			out.Fields = append(out.Fields, expr.Field{Name: m.name, Shape: m.value.shape()})
		}
		return out
	}
	return fixedShape(n.fixed)
}

func fixedShape(value any) *expr.Shape {
	switch v := value.(type) {
	case bool:
		return &expr.Shape{Type: expr.Bool}
	case int64:
		return &expr.Shape{Type: expr.Int}
	case float64:
		return &expr.Shape{Type: expr.Double}
	case string:
		return &expr.Shape{Type: expr.String}
	case []any:
		out := &expr.Shape{Type: expr.List}
		if len(v) == 1 {
			out.Elem = fixedShape(v[0])
		}
		return out
	case map[string]any:
		out := &expr.Shape{Type: expr.Map}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out.Fields = append(out.Fields, expr.Field{Name: name, Shape: fixedShape(v[name])})
		}
		return out
	}
	return nil
}
