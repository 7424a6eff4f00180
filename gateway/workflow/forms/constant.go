package forms

import (
	"context"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
)

// constants checks the constant values of a field, such as contradictory bounds or an invalid
// default.
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
		c.wrong(textOf(v), "this is not a value of the field: "+problem.Message, problem.Hint)
	}
	return bound
}

// constantOptions sets the options of q if they are constant, and reports whether they are known.
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

// constant returns the value of a binding without expressions.
func constant(b *template.Binding) (value any, ok bool) {
	if b == nil || !b.Constant() {
		return nil, false
	}
	value, err := b.Eval(context.Background(), nil)
	return value, err == nil
}

// textOf returns the text of a value, or its position.
func textOf(v *spec.Value) spec.Text {
	if v.Kind == spec.String {
		return v.Text
	}
	return spec.Text{Pos: v.Pos}
}
