// Package forms asks for the values of a workflow's form and validates the answers. Its main type is [Form], a
// compiled form. The state of a form that is being filled is a [State], plain JSON, which the caller
// stores; [Form.Next] returns what to ask next as an [Ask], and [Form.Answer] stores the valid answers and returns the problems
// of the others. A person is asked over MCP ([AskPeer]), over HTTP, or in a terminal.
package forms

import (
	"regexp"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
)

const (
	// maxFields limits the fields of a form, maxOptions the options of a field.
	maxFields  = 256
	maxOptions = 1000
	// maxText limits a text, maxOption an option, maxAnswers all answers of a form as JSON, in bytes.
	maxText    = 64 << 10
	maxOption  = 1 << 10
	maxAnswers = 1 << 20
)

// Form is a compiled form. It is immutable.
type Form struct {
	title  *template.Binding
	fields []*field
}

// field is one field with compiled expressions; missing ones are nil.
type field struct {
	*spec.Field
	name     string
	when     *template.Binding
	from     *source
	fallback *template.Binding
	options  *source
	min, max *template.Binding
	pattern  *regexp.Regexp
	rule     *template.Binding
	check    func(value any) error
}

// source provides values: by an expression or a tool.
type source struct {
	value        *template.Binding
	tool         string
	with, output *template.Binding
}

// The field types. typeJSON is only for inputs of workflows.
const (
	typeString   = "string"
	typeText     = "text"
	typeInteger  = "integer"
	typeNumber   = "number"
	typeBoolean  = "boolean"
	typeDate     = "date"
	typeDatetime = "datetime"
	typeEmail    = "email"
	typeURI      = "uri"
	typeChoice   = "choice"
	typeChoices  = "choices"
	typeJSON     = "json"
)

// Compile compiles a form. scope is the scope of the step; a field's expressions also see "form",
// which has the earlier fields, and its rule also sees "value". The form is nil if there are problems.
func Compile(scope template.Scope, f *spec.Form) (*Form, []template.Problem) {
	c := compiler{scope: scope}
	out := &Form{title: c.value(scope, f.Title)}
	if len(f.Fields) > maxFields {
		c.wrong(f.Fields[maxFields].Name, "a form has at most 256 fields", "two forms, one after the other, can ask for more")
	}
	for i := range min(len(f.Fields), maxFields) {
		out.fields = append(out.fields, c.field(f.Fields, i))
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return out, nil
}

type compiler struct {
	scope    template.Scope
	problems []template.Problem
}

func (c *compiler) field(fields []spec.Field, i int) *field {
	f := &fields[i]
	scope := c.scope.With(expr.Var{Name: "form", Type: expr.Any, Shape: precedingShape(fields, i)})
	out := &field{Field: f, name: f.Name.Text}
	if f.If != nil {
		out.when = c.text(scope, *f.If)
	}
	out.from, out.options = c.source(scope, f.From), c.source(scope, f.Options)
	out.fallback, out.min, out.max = c.optional(scope, f.Default), c.optional(scope, f.Min), c.optional(scope, f.Max)
	if f.Rule != nil {
		value := expr.Var{Name: "value", Type: expr.Any, Shape: valueShape(*f)}
		out.rule = c.text(c.scope.With(expr.Var{Name: "form", Type: expr.Any, Shape: precedingShape(fields, i+1)}, value), *f.Rule)
	}
	if f.Pattern != nil {
		out.pattern = c.pattern(*f.Pattern)
	}
	c.constants(out)
	return out
}

func isTextType(kind string) bool {
	return kind == typeString || kind == typeText || kind == typeEmail || kind == typeURI
}

func (c *compiler) source(scope template.Scope, s *spec.Source) *source {
	switch {
	case s == nil:
		return nil
	case s.Tool == nil:
		return &source{value: c.optional(scope, s.Value)}
	}
	out := &source{tool: s.Tool.Name.Text, with: c.value(scope, s.Tool.With)}
	out.output = c.optional(scope.With(expr.Var{Name: "output", Type: expr.Any}), s.Output)
	return out
}

func (c *compiler) pattern(t spec.Text) *regexp.Regexp {
	re, err := regexp.Compile("^(?:" + t.Text + ")$")
	if err != nil {
		message, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "error parsing regexp: "), ": `^(?:")
		c.wrong(t, "the pattern cannot be read: "+message, "it is a regular expression as RE2 has it, for the whole text")
		return nil
	}
	return re
}

func (c *compiler) optional(scope template.Scope, v *spec.Value) *template.Binding {
	if v == nil {
		return nil
	}
	return c.value(scope, *v)
}

func (c *compiler) value(scope template.Scope, v spec.Value) *template.Binding {
	b, problems := template.Compile(scope, v)
	c.problems = append(c.problems, problems...)
	return b
}

func (c *compiler) text(scope template.Scope, t spec.Text) *template.Binding {
	b, problems := template.CompileText(scope, t, expr.Bool)
	c.problems = append(c.problems, problems...)
	return b
}

func (c *compiler) wrong(t spec.Text, message, hint string) {
	c.problems = append(c.problems, template.Problem{Text: t, Message: message, Hint: hint})
}
