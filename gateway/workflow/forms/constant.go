package forms

import (
	"context"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
)

// constants finds what is wrong with the values of a field that have no expressions in them: it could not be answered, or
// the default would not be taken.
func (c *compiler) constants(f *field) {
	q := &Question{Name: f.name, Type: f.Type, MinLength: f.MinLength, MaxLength: f.MaxLength}
	if f.pattern != nil {
		q.Pattern = f.Pattern.Text
	}
	q.Min, q.Max = c.constantBound(f, f.min, f.Min), c.constantBound(f, f.max, f.Max)
	if q.Min != nil && q.Max != nil && compare(f.Type, q.Min, q.Max) > 0 {
		c.wrong(textOf(f.Max), "max is below min", "")
	}
	known := c.constantOptions(f, q)
	if fallback, ok := constant(f.fallback); ok && known {
		if _, problem := q.Read(fallback); problem != nil {
			c.wrong(textOf(f.Default), "the default does not fit the field: "+problem.Message, problem.Hint)
		}
	}
}

func (c *compiler) constantBound(f *field, b *template.Binding, v *spec.Value) any {
	value, ok := constant(b)
	if !ok || value == nil {
		return nil
	}
	bound, problem := convert(&Question{Name: f.name, Type: f.Type}, value)
	if problem != nil {
		c.wrong(textOf(v), "this is no value of the field: "+problem.Message, problem.Hint)
	}
	return bound
}

// constantOptions reports whether it is known what there is to choose from.
func (c *compiler) constantOptions(f *field, q *Question) (known bool) {
	if f.options == nil {
		return true
	}
	value, ok := constant(f.options.value)
	if !ok {
		return false
	}
	options, err := f.choices(value)
	if err != nil {
		c.wrong(textOf(f.Options.Value), err.Message, err.Hint)
		return false
	}
	q.Options = options
	return true
}

// constant is the value of a binding without references.
func constant(b *template.Binding) (value any, ok bool) {
	if b == nil || !b.Constant() {
		return nil, false
	}
	value, err := b.Eval(context.Background(), nil)
	return value, err == nil
}

// textOf says where a value stands.
func textOf(v *spec.Value) spec.Text {
	if v.Kind == spec.String {
		return v.Text
	}
	return spec.Text{Pos: v.Pos}
}
