package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/expr"
)

// Problem is an error or warning about an expression, found when compiling.
type Problem struct {
	// Text and Offset (in bytes) are the location: Text.At(Offset) is the position in the file.
	Text    spec.Text
	Offset  int
	Message string
	// Hint says what would be valid; it may be "".
	Hint string
}

// Binding is a compiled value of a definition. It is safe for concurrent use.
type Binding struct {
	root     node
	programs []*program
	warnings []Problem
}

// node is a value or a part of one: fixed for a constant, else one of the others is set.
type node struct {
	fixed   any
	program *program
	join    []node // of a text
	items   []node
	members []member
}

type member struct {
	name  string
	value node
}

// program is one expression.
type program struct {
	*expr.Program
	source string
	line   int
}

func (n *node) isFixed() bool {
	return n.program == nil && n.join == nil && n.items == nil && n.members == nil
}

// Compile compiles the expressions of a value. The binding is nil if there are problems.
func Compile(s Scope, v spec.Value) (*Binding, []Problem) {
	c := compiler{scope: s}
	b := &Binding{root: c.value(v)}
	return c.finish(b)
}

// CompileText compiles a text that is one expression of type want, without ${{ and }}; [expr.Any] is any type.
func CompileText(s Scope, t spec.Text, want expr.Type) (*Binding, []Problem) {
	c := compiler{scope: s}
	b := &Binding{root: c.expression(t, part{text: t.Text}, want)}
	return c.finish(b)
}

type compiler struct {
	scope              Scope
	problems, warnings []Problem
	programs           []*program
}

func (c *compiler) finish(b *Binding) (*Binding, []Problem) {
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	b.programs, b.warnings = c.programs, c.warnings
	return b, nil
}

func (c *compiler) value(v spec.Value) node {
	switch v.Kind {
	case spec.String:
		return c.text(v.Text)
	case spec.List:
		return c.list(v.Items)
	case spec.Map:
		return c.object(v.Members)
	case spec.Bool, spec.Number:
		return node{fixed: canonical(v.Scalar, new(int))}
	}
	return node{}
}

func (c *compiler) list(items []spec.Value) node {
	n, fixed := node{}, make([]any, 0, len(items))
	for _, item := range items {
		part := c.value(item)
		n.items = append(n.items, part)
		if part.isFixed() {
			fixed = append(fixed, part.fixed)
		}
	}
	if len(fixed) == len(items) {
		return node{fixed: fixed}
	}
	return n
}

func (c *compiler) object(members []spec.Member) node {
	n, fixed := node{}, make(map[string]any, len(members))
	for _, m := range members {
		part := c.value(m.Value)
		n.members = append(n.members, member{m.Name.Text, part})
		if part.isFixed() {
			fixed[m.Name.Text] = part.fixed
		}
	}
	if len(fixed) == len(members) {
		return node{fixed: fixed}
	}
	return n
}

func (c *compiler) text(t spec.Text) node {
	if !strings.Contains(t.Text, opening) {
		return node{fixed: t.Text}
	}
	parts, wrong, offset := split(t.Text)
	if wrong == "" && count(parts) > maxExpressions {
		wrong = fmt.Sprintf("this text has more than %d expressions", maxExpressions)
	}
	if wrong != "" {
		c.problems = append(c.problems, Problem{Text: t, Offset: offset, Message: wrong, Hint: "an expression is written ${{ ... }}, and a plain ${{ as $${{"})
		return node{}
	}
	if len(parts) == 1 && parts[0].expression {
		return c.expression(t, parts[0], expr.Any)
	}
	n, fixed := node{}, strings.Builder{}
	for _, p := range parts {
		if p.expression {
			n.join = append(n.join, c.expression(t, p, expr.Any))
			continue
		}
		fixed.WriteString(p.text)
		n.join = append(n.join, node{fixed: p.text})
	}
	if !slices.ContainsFunc(parts, func(p part) bool { return p.expression }) {
		return node{fixed: fixed.String()}
	}
	return n
}

func count(parts []part) (n int) {
	for _, p := range parts {
		if p.expression {
			n++
		}
	}
	return n
}

func (c *compiler) expression(t spec.Text, p part, want expr.Type) node {
	source := strings.TrimSpace(p.text)
	offset := p.offset + strings.Index(p.text, source)
	if source == "" {
		c.problems = append(c.problems, Problem{Text: t, Offset: p.offset, Message: "there is no expression here"})
		return node{}
	}
	env, err := c.scope.env()
	if err != nil {
		c.problems = append(c.problems, Problem{Text: t, Offset: offset, Message: err.Error()})
		return node{}
	}
	compiled, err := env.Compile(source, want)
	if err != nil {
		problem := Problem{Text: t, Offset: offset, Message: err.Error()}
		if wrong, ok := errors.AsType[*expr.Error](err); ok {
			problem.Offset, problem.Message = offset+wrong.Offset, wrong.Message
		}
		c.problems = append(c.problems, problem)
		return node{}
	}
	for _, w := range compiled.Warnings() {
		c.warnings = append(c.warnings, Problem{Text: t, Offset: offset + w.Offset, Message: w.Message})
	}
	program := &program{Program: compiled, source: source, line: t.At(offset).Line}
	c.programs = append(c.programs, program)
	return node{program: program}
}

// Uses reports whether one of the expressions uses a variable.
func (b *Binding) Uses(name string) bool {
	return slices.ContainsFunc(b.programs, func(p *program) bool { return p.Uses(name) })
}

// Variables returns the variables that its expressions use, sorted.
func (b *Binding) Variables() (all []string) {
	for _, p := range b.programs {
		all = append(all, p.Variables()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Warnings returns probable errors. Only a scope with shapes finds any.
func (b *Binding) Warnings() []Problem { return b.warnings }

// Constant reports whether it has no expressions.
func (b *Binding) Constant() bool { return len(b.programs) == 0 }
