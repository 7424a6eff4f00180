package forms

import (
	"slices"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/expr"
)

// Shape returns the shape of the result of a form with these fields.
func Shape(fields []spec.Field) *expr.Shape {
	s := &expr.Shape{Type: expr.Map}
	for _, f := range fields {
		s.Fields = append(s.Fields, expr.Field{Name: f.Name.Text, Optional: f.If != nil, Shape: fieldShape(f)})
	}
	return s
}

// precedingShape returns the shape of "form" in the expressions of the n-th field.
func precedingShape(fields []spec.Field, n int) *expr.Shape {
	s := &expr.Shape{Type: expr.Map, Absent: func(name string) string {
		if slices.ContainsFunc(fields[n:], func(f spec.Field) bool { return f.Name.Text == name }) {
			return "a field sees only the fields before it, and " + name + " is not one"
		}
		return ""
	}}
	for _, f := range fields[:n] {
		shape := fieldShape(f)
		if f.If != nil {
			shape = nil // null if it does not apply
		}
		s.Fields = append(s.Fields, expr.Field{Name: f.Name.Text, Shape: shape})
	}
	return s
}

// fieldShape returns the shape of a field's value, nil if it can be null.
func fieldShape(f spec.Field) *expr.Shape {
	if !f.Required {
		return nil
	}
	return valueShape(f)
}

func valueShape(f spec.Field) *expr.Shape {
	switch f.Type {
	case typeInteger:
		return &expr.Shape{Type: expr.Int}
	case typeNumber:
		return &expr.Shape{Type: expr.Double}
	case typeBoolean:
		return &expr.Shape{Type: expr.Bool}
	case typeChoices:
		return &expr.Shape{Type: expr.List}
	case typeChoice, typeJSON:
		return nil
	}
	return &expr.Shape{Type: expr.String}
}
