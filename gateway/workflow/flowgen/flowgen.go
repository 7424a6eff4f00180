// Package flowgen generates a workflow definition from an execution: its calls in order, with references where an argument
// equals the result of an earlier call. Its only function is [From]. Computations between the calls are not visible, so a
// draft needs editing by a person; tests check that it can be loaded.
package flowgen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sallyport/gateway/history"
	"sallyport/internal/tool"
)

const (
	// maxSteps limits the steps of a draft; for a program with more calls the draft is one step with the program.
	maxSteps = 200
	// maxDraft limits the size of a draft, in bytes; as for maxSteps.
	maxDraft = 512 << 10
	// maxProgram limits a program in a definition, in bytes.
	maxProgram = 64 << 10
)

// From returns a definition in YAML that makes the calls of an execution. tools are the current tools, for comments on missing and writing ones.
// Errors are *tool.Error.
func From(done history.Succeeded, tools []tool.Tool) ([]byte, error) {
	d := newDrafter(done, tools)
	if err := d.read(); err != nil {
		return nil, err
	}
	d.groupCalls()
	if len(d.steps) == 0 || len(d.steps) > maxSteps || d.methods {
		return d.program()
	}
	for _, s := range d.steps {
		d.bind(s)
	}
	d.nameInputs()
	text := d.write()
	if len(text) > maxDraft {
		return d.program()
	}
	return []byte(text), nil
}

// drafter generates one draft.
type drafter struct {
	done  history.Succeeded
	tools map[tool.ID]tool.Tool
	calls []*call
	steps []*step
	// failed are the failed calls, lost the calls with results that were too large to be stored.
	failed, lost []string
	// methods says that the program made requests other than tool calls.
	methods bool
	known   valueIndex
	ids     map[string]bool
	inputs  inputs
}

func newDrafter(done history.Succeeded, tools []tool.Tool) *drafter {
	d := &drafter{done: done, tools: map[tool.ID]tool.Tool{}, known: valueIndex{refs: map[string][]ref{}}, ids: map[string]bool{}, inputs: newInputs(done.Variables)}
	for _, t := range tools {
		d.tools[t.ID] = t
	}
	return d
}

// call is one successful call.
type call struct {
	tool      tool.ID
	arguments value
	result    value
}

// step is one step of the draft: a call, or a loop of calls over a list.
type step struct {
	id    string
	tool  tool.ID
	calls []*call
	loop  *loop // nil for a call
	with  node
}

// read collects the successful calls.
func (d *drafter) read() error {
	for i, c := range d.done.Did {
		if c.Err != nil || c.Result.IsError {
			d.failed = append(d.failed, fmt.Sprintf("call %d, of %s", i+1, c.Tool))
			continue
		}
		if c.Lost {
			d.lost = append(d.lost, fmt.Sprintf("call %d, of %s", i+1, c.Tool))
		}
		d.methods = d.methods || c.Tool.Method() != "tools/call"
		arguments, err := parse(c.Arguments)
		if err != nil || arguments.kind != '{' {
			return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("the arguments of call %d, of %s, are not an object", i+1, c.Tool)}
		}
		d.calls = append(d.calls, &call{c.Tool, arguments, resultOf(c.Result)})
	}
	return nil
}

// groupCalls groups calls into steps. Consecutive calls of one tool that differ in one argument become one loop.
func (d *drafter) groupCalls() {
	for i := 0; i < len(d.calls); {
		n, l := d.loopAt(i)
		c := d.calls[i]
		s := &step{tool: c.tool, calls: d.calls[i : i+n], loop: l}
		s.id = d.unique(c.tool.Name)
		if l != nil {
			l.inner = s.id
			s.id = d.unique("each_" + c.tool.Name)
		}
		d.steps = append(d.steps, s)
		d.known.add("steps."+s.id+".output", s.result())
		i += n
	}
	d.known = valueIndex{refs: map[string][]ref{}} // bind adds the results again, step by step
}

// result is the result of a step.
func (s *step) result() value {
	if s.loop == nil {
		return s.calls[0].result
	}
	v, raws := value{kind: '['}, []string{}
	for _, c := range s.calls {
		v.items, raws = append(v.items, c.result), append(raws, c.result.raw)
	}
	v.raw = "[" + strings.Join(raws, ",") + "]"
	return v
}

// unique returns a unique step id for a name.
func (d *drafter) unique(name string) string {
	const longest = 56
	base := name[:min(len(name), longest)]
	id := base
	for i := 2; d.ids[id]; i++ {
		id = base + "_" + strconv.Itoa(i)
	}
	d.ids[id] = true
	return id
}

// loop is the list that a step iterates over.
type loop struct {
	inner string // the id of the inner step
	param string // the argument that differs
	// expr is the earlier list, member the path to the argument in an item; "" if the values are written out.
	expr, member string
	values       []value
}

// reorder sorts calls, which may have been concurrent, in the order of the list.
func (d *drafter) reorder(calls []*call, l *loop, order []value) {
	place := func(c *call) int {
		v, _ := c.arguments.member(l.param)
		return slices.IndexFunc(order, func(o value) bool { return o.raw == v.raw })
	}
	slices.SortStableFunc(calls, func(a, b *call) int { return place(a) - place(b) })
}

const (
	// minListed is the minimum number of calls for a loop over new values, minFound over the values of an earlier list.
	minListed, minFound = 3, 2
)

// loopAt returns how many calls from i on form one step, and its loop, nil for a single call.
func (d *drafter) loopAt(i int) (n int, l *loop) {
	param, last := "", i+1
	for ; last < len(d.calls); last++ {
		differs, ok := oneDiffers(d.calls[i], d.calls[last], param)
		if !ok || d.cameFrom(i, last, differs) {
			break
		}
		param = differs
	}
	l = &loop{param: param}
	for _, c := range d.calls[i:last] {
		v, _ := c.arguments.member(param)
		l.values = append(l.values, v)
	}
	for n := last - i; n >= minFound; n-- {
		if expr, member, order := d.known.findList(l.values[:n]); order != nil {
			l.expr, l.member, l.values = expr, member, l.values[:n]
			d.reorder(d.calls[i:i+n], l, order)
			return n, l
		}
	}
	if last-i >= minListed {
		return last - i, l
	}
	return 1, nil
}

// oneDiffers reports whether two calls of the same tool differ in exactly one argument, a string or number, and returns its name. If param is not "", it must be that one.
func oneDiffers(a, b *call, param string) (string, bool) {
	if a.tool != b.tool || len(a.arguments.members) != len(b.arguments.members) {
		return "", false
	}
	differs := ""
	for _, m := range a.arguments.members {
		other, ok := b.arguments.member(m.name)
		switch {
		case !ok:
			return "", false
		case other.raw == m.raw && m.name != param:
			continue
		case differs != "" || !m.scalar() || !other.scalar():
			return "", false
		}
		differs = m.name
	}
	return differs, differs != "" && (param == "" || differs == param)
}

// cameFrom reports whether an argument of a call is in the result of an earlier call of the same group, so that it depends on it.
func (d *drafter) cameFrom(first, last int, param string) bool {
	v, _ := d.calls[last].arguments.member(param)
	if !v.distinctive() {
		return false
	}
	for _, c := range d.calls[first:last] {
		if given, _ := c.arguments.member(param); given.raw != v.raw && strings.Contains(c.result.raw, v.raw) && !d.knownBefore(first, v) {
			return true
		}
	}
	return false
}

// knownBefore reports whether a value was known before a call.
func (d *drafter) knownBefore(first int, v value) bool {
	return slices.ContainsFunc(d.calls[:first], func(c *call) bool {
		return strings.Contains(c.result.raw, v.raw) || strings.Contains(c.arguments.raw, v.raw)
	})
}

// bind finds the origins of the arguments of a step, and adds its result to known.
func (d *drafter) bind(s *step) {
	s.with = node{members: []namedNode{}}
	for _, m := range s.calls[0].arguments.members {
		n := node{}
		switch {
		case s.loop != nil && m.name == s.loop.param && s.loop.expr != "":
			n.expr = "item" + s.loop.member
		case s.loop != nil && m.name == s.loop.param:
			n.expr = "item"
			d.inputs.list(s)
		default:
			n = d.argument(s, m.name, m.value)
		}
		s.with.members = append(s.with.members, namedNode{m.name, n})
	}
	d.known.add("steps."+s.id+".output", s.result())
}

// argument returns the origin of an argument.
func (d *drafter) argument(s *step, param string, v value) node {
	if d.inputs.knows(param, v) {
		return d.inputs.constant(s, param, v)
	}
	if expr, ok := d.known.find(param, v); ok {
		return node{expr: expr}
	}
	switch v.kind {
	case '{':
		n := node{members: []namedNode{}}
		for _, m := range v.members {
			n.members = append(n.members, namedNode{m.name, d.argument(s, m.name, m.value)})
		}
		return n
	case '[':
		if expr, ok := d.known.findMapped(v); ok {
			return node{expr: expr}
		}
		n := node{items: []node{}}
		for _, item := range v.items {
			n.items = append(n.items, d.argument(s, param, item))
		}
		return n
	case '"':
		if parts := d.known.splitText(v.text, func(part value) bool { return d.inputs.knows("", part) }); parts != nil {
			return node{parts: parts}
		}
	}
	return d.inputs.constant(s, param, v)
}
