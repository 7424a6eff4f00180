// Package lint checks a workflow before it runs: [Check] checks names, types and arguments against what
// the tools declare and the observed results; [Plan] shows what a run with given inputs would do, and which of
// its calls need approval. Neither calls a tool.
package lint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"
)

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the workflow fails, or does not do what it says
	Warning Severity = "warning" // it probably fails, or this cannot be checked
)

// Finding is one problem, with its location in the file.
type Finding struct {
	*yamlstrict.Error
	Severity Severity
}

// String returns the location, severity and message, and the source line with a caret.
func (f Finding) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, f.Severity, f.Message)
	if f.Snippet != "" {
		text += "\n" + f.Snippet
	}
	return text
}

// Options has the names that a workflow may use. A nil field is unknown and not checked.
type Options struct {
	Tools []tool.Tool
	// Upstreams are the names of the configured upstreams; one without tools is not connected.
	Upstreams []string
	Workflows map[string]*spec.Definition
	// Skills returns the functions of a skill, nil if unknown, and whether the skill exists.
	Skills func(name string) (functions []string, ok bool)
	// Secrets are the names of webhook secrets.
	Secrets []string
	// Environments are the names of program environments, Models those of language models.
	Environments, Models []string
}

// Check returns the findings of a definition, in file order. Of other definitions it only uses the inputs, outputs and nested calls.
func Check(d *spec.Definition, o Options) []Finding {
	c := newChecker(d, o)
	c.triggers()
	c.inputs()
	top := visible{}
	c.block(d.Steps, &top)
	c.outputs(top)
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	return slices.CompactFunc(c.findings, func(a, b Finding) bool { return a.Line == b.Line && a.Column == b.Column && a.Message == b.Message })
}

// checker checks one definition.
type checker struct {
	d         *spec.Definition
	o         Options
	tools     map[tool.ID]*tool.Tool
	locations map[string]location
	scope     template.Scope // with inputs, env and run
	findings  []Finding
}

// location is the location of a step: the enclosing steps, outermost first, and its index among all steps.
type location struct {
	in    []*spec.Step
	order int
}

func newChecker(d *spec.Definition, o Options) *checker {
	c := &checker{d: d, o: o, tools: map[tool.ID]*tool.Tool{}, locations: map[string]location{}}
	for i := range o.Tools {
		c.tools[o.Tools[i].ID] = &o.Tools[i]
	}
	spec.Walk(d.Steps, func(s *spec.Step, in []*spec.Step) {
		c.locations[s.ID.Text] = location{slices.Clone(in), len(c.locations)}
	})
	c.scope = template.Only(c.inputsVar(), c.envVar(), expr.Var{Name: "run", Type: expr.Any, Shape: object("id", "workflow", "started", "trigger")})
	return c
}

// object returns the shape of an object of strings.
func object(names ...string) *expr.Shape {
	out := &expr.Shape{Type: expr.Map}
	for _, name := range names {
		out.Fields = append(out.Fields, expr.Field{Name: name, Shape: &expr.Shape{Type: expr.String}})
	}
	return out
}

func (c *checker) inputsVar() expr.Var {
	out := &expr.Shape{Type: expr.Map}
	for _, in := range c.d.Inputs {
		out.Fields = append(out.Fields, expr.Field{Name: in.Name.Text, Shape: shapeOf(in.Schema)})
	}
	out.Absent = func(name string) string { return noSuch("input", name, out.Names(), "the workflow has none") }
	return expr.Var{Name: "inputs", Type: expr.Any, Shape: out}
}

func (c *checker) envVar() expr.Var {
	out := &expr.Shape{Type: expr.Map}
	for _, name := range c.d.Env {
		out.Fields = append(out.Fields, expr.Field{Name: name.Text, Shape: &expr.Shape{Type: expr.String}})
	}
	out.Absent = func(name string) string {
		return fmt.Sprintf("%s is not among the names in the key env: add it there", name)
	}
	return expr.Var{Name: "env", Type: expr.Any, Shape: out}
}

const maxNames = 12 // that a message lists

// noSuch returns the message for an unknown name, with a suggestion or the known names. none is said if there are none.
func noSuch(kind, name string, names []string, none string) string {
	text := fmt.Sprintf("there is no %s %s", kind, sanitize.Line(name, 80))
	if near := suggest.Of(name, names); near != "" {
		return text + fmt.Sprintf("; did you mean %q?", near)
	}
	if len(names) == 0 {
		return text + ": " + none
	}
	shown := strings.Join(names[:min(len(names), maxNames)], ", ")
	if len(names) > maxNames {
		shown += fmt.Sprintf(" and %d more", len(names)-maxNames)
	}
	return text + "; there are " + sanitize.Line(shown, 300)
}

func (c *checker) addFinding(severity Severity, at spec.Pos, format string, args ...any) {
	c.findings = append(c.findings, Finding{c.d.Error(at, "%s", sanitize.Line(fmt.Sprintf(format, args...), 500)), severity})
}

func (c *checker) errorf(at spec.Pos, format string, args ...any) {
	c.addFinding(Error, at, format, args...)
}
func (c *checker) warnf(at spec.Pos, format string, args ...any) {
	c.addFinding(Warning, at, format, args...)
}

// addProblems reports the problems and warnings of a compiled binding, and returns the binding.
func (c *checker) addProblems(b *template.Binding, problems []template.Problem) *template.Binding {
	for _, p := range problems {
		message := p.Message
		if p.Hint != "" {
			message += " (" + p.Hint + ")"
		}
		c.errorf(p.Text.At(p.Offset), "%s", message)
	}
	if b != nil {
		for _, w := range b.Warnings() {
			c.warnf(w.Text.At(w.Offset), "%s", w.Message)
		}
	}
	return b
}

// value checks the expressions of a value and returns its shape, nil if unknown or invalid.
func (c *checker) value(in template.Scope, v spec.Value) *expr.Shape {
	switch v.Kind {
	case spec.Map:
		out := &expr.Shape{Type: expr.Map}
		for _, m := range v.Members {
			out.Fields = append(out.Fields, expr.Field{Name: m.Name.Text, Shape: c.value(in, m.Value)})
		}
		return out
	case spec.List:
		out := &expr.Shape{Type: expr.List}
		for i, item := range v.Items {
			if elem := c.value(in, item); i == 0 {
				out.Elem = elem
			} else {
				out.Elem = common([]*expr.Shape{out.Elem, elem})
			}
		}
		return out
	}
	if b := c.addProblems(template.Compile(in, v)); b != nil {
		return b.Shape()
	}
	return nil
}

// text checks a text that is an expression.
func (c *checker) text(in template.Scope, t spec.Text, want expr.Type) *template.Binding {
	return c.addProblems(template.CompileText(in, t, want))
}

// condition checks a condition, and warns if it is constant.
func (c *checker) condition(in template.Scope, t spec.Text, always map[bool]string) {
	b := c.text(in, t, expr.Bool)
	if b == nil || len(b.Variables()) > 0 {
		return
	}
	if is, err := b.Bool(context.Background(), nil); err == nil && always[is] != "" {
		c.warnf(t.At(0), "this is always %v: %s", is, always[is])
	}
}
