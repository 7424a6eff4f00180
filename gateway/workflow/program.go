package workflow

import (
	"errors"
	"sync"

	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// node is a step with compiled expressions.
type node struct {
	*spec.Step

	cond, output, key, idempotency *template.Binding
	// with is the arguments; for a loop the list, for a wait the time or the message.
	with *template.Binding
	// words is the text of a task.
	words *template.Binding
	// when are the conditions of a switch, or the one of a while.
	when   []*template.Binding
	blocks []block
	form   *forms.Form
}

// block is a sequence of steps within a step; name is its name in paths.
type block struct {
	name  string
	steps []*node
}

// program is a compiled definition. It is immutable.
type program struct {
	*spec.Definition
	steps    []*node
	defaults []*template.Binding // by input
	outputs  []*template.Binding // by output
}

// compiler compiles a definition and collects its faults.
type compiler struct {
	def    *spec.Definition
	faults []error
}

// compile compiles all expressions of a definition. The error is a *tool.Error of kind invalid with the location of each fault.
func compile(d *spec.Definition) (*program, error) {
	c := &compiler{def: d}
	scope := template.Any()
	p := &program{Definition: d, steps: c.sequence(scope, d.Steps)}
	for _, in := range d.Inputs {
		p.defaults = append(p.defaults, c.optional(scope, in.Default))
	}
	for _, out := range d.Outputs {
		p.outputs = append(p.outputs, c.value(scope, out.Value))
	}
	if len(c.faults) > 0 {
		return nil, &tool.Error{Kind: tool.Invalid, Message: errors.Join(c.faults...).Error(), Hint: "sallyport workflow lint " + d.Path}
	}
	return p, nil
}

func (c *compiler) addProblems(problems []template.Problem) {
	for _, p := range problems {
		c.faults = append(c.faults, c.def.Error(p.Text.At(p.Offset), "%s", p.Message))
	}
}

func (c *compiler) value(s template.Scope, v spec.Value) *template.Binding {
	b, problems := template.Compile(s, v)
	c.addProblems(problems)
	return b
}

func (c *compiler) optional(s template.Scope, v *spec.Value) *template.Binding {
	if v == nil {
		return nil
	}
	return c.value(s, *v)
}

func (c *compiler) text(s template.Scope, t *spec.Text, want expr.Type) *template.Binding {
	if t == nil {
		return nil
	}
	b, problems := template.CompileText(s, *t, want)
	c.addProblems(problems)
	return b
}

func (c *compiler) sequence(s template.Scope, steps []spec.Step) []*node {
	nodes := make([]*node, len(steps))
	for i := range steps {
		nodes[i] = c.step(s, &steps[i])
	}
	return nodes
}

func (c *compiler) step(s template.Scope, step *spec.Step) *node {
	n := &node{Step: step}
	n.cond = c.text(s, step.If, expr.Bool)
	n.output = c.optional(s.With(anyVar("output")), step.Output)
	n.idempotency = c.optional(s, step.Idempotency)
	if step.Cache != nil {
		n.key = c.optional(s, step.Cache.Key)
	}
	c.action(s, n)
	return n
}

func (c *compiler) action(s template.Scope, n *node) {
	switch do := n.Do.(type) {
	case *spec.Tool:
		n.with = c.value(s, do.With)
	case *spec.Code:
		n.with = c.value(s, do.With)
	case *spec.Skill:
		n.with = c.value(s, do.With)
	case *spec.Plugin:
		n.with = c.value(s, do.With)
	case *spec.Task:
		n.with, n.words = c.value(s, do.With), c.value(s, do.Words)
	case *spec.Nested:
		n.with = c.value(s, do.With)
	case *spec.Parallel:
		for _, b := range do.Branches {
			n.blocks = append(n.blocks, block{b.Name.Text, c.sequence(s, b.Steps)})
		}
	case *spec.ForEach:
		n.with = c.value(s, do.In)
		inner := s.With(anyVar(loopName(do.As, "item")), anyVar(loopName(do.Index, "index")))
		n.blocks = []block{{"", c.sequence(inner, do.Steps)}}
	case *spec.Switch:
		c.cases(s, n, do)
	case *spec.While:
		inner := s.With(anyVar("index"), anyVar("last"))
		n.when = []*template.Binding{c.text(inner, &do.When, expr.Bool)}
		n.blocks = []block{{"", c.sequence(inner, do.Steps)}}
	case *spec.Wait:
		c.wait(s, n, do)
	case *spec.Form:
		var problems []template.Problem
		n.form, problems = forms.Compile(s, do)
		c.addProblems(problems)
	case *spec.Try:
		n.blocks = []block{{"try", c.sequence(s, do.Steps)}, {"catch", c.sequence(s.With(anyVar(loopName(do.As, "error"))), do.Catch)}, {"finally", c.sequence(s, do.Finally)}}
	}
}

func (c *compiler) cases(s template.Scope, n *node, do *spec.Switch) {
	for i, one := range do.Cases {
		n.when = append(n.when, c.text(s, &one.When, expr.Bool))
		n.blocks = append(n.blocks, block{"case" + index(i), c.sequence(s, one.Steps)})
	}
	n.blocks = append(n.blocks, block{"default", c.sequence(s, do.Default)})
}

func (c *compiler) wait(s template.Scope, n *node, do *spec.Wait) {
	switch {
	case do.Approval != nil:
		n.with = c.value(s, do.Approval.Message)
	case do.For != nil:
		n.with = c.value(s, *do.For)
	case do.Until != nil:
		n.with = c.value(s, *do.Until)
	}
}

// anyVar returns a variable of any type.
func anyVar(name string) expr.Var { return expr.Var{Name: name, Type: expr.Any} }

// loopName returns the name in a definition, or the default.
func loopName(given spec.Text, usual string) string {
	if given.Text != "" {
		return given.Text
	}
	return usual
}

// maxPrograms limits the cache of compiled definitions.
const maxPrograms = 128

// programs is a cache of compiled definitions by path and digest. It is safe for concurrent use.
type programs struct {
	mu    sync.Mutex
	cache map[string]*program
}

// get returns the program of a definition, from the cache if possible.
func (k *programs) get(d *spec.Definition) (*program, error) {
	key := d.Path + "\x00" + d.Digest
	k.mu.Lock()
	p := k.cache[key]
	k.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := compile(d)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.cache) >= maxPrograms || k.cache == nil {
		k.cache = map[string]*program{}
	}
	k.cache[key] = p
	return p, nil
}
