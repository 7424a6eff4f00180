package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
)

// visible is what the steps of a block can see: earlier steps, and loop variables.
type visible struct {
	steps []expr.Field
	vars  []expr.Var
}

// inside returns what is visible in a nested block, with additional variables.
func (v visible) inside(vars ...expr.Var) *visible {
	return &visible{slices.Clip(v.steps), append(slices.Clip(v.vars), vars...)}
}

// scopeAt returns the scope of a step, or of the outputs if s is nil.
func (c *checker) scopeAt(v visible, s *spec.Step) template.Scope {
	steps := &expr.Shape{Type: expr.Map, Fields: v.steps}
	steps.Absent = func(name string) string { return c.whyInvisible(name, s, steps.Names()) }
	return c.scope.With(append([]expr.Var{{Name: "steps", Type: expr.Any, Shape: steps}}, v.vars...)...)
}

// whyInvisible returns why a step is not visible from s.
func (c *checker) whyInvisible(name string, s *spec.Step, seen []string) string {
	target, exists := c.locations[name]
	if !exists {
		return noSuch("step", name, seen, "there is none before this one")
	}
	var around []*spec.Step // s and its enclosing steps
	order := len(c.locations)
	if s != nil {
		here := c.locations[s.ID.Text]
		around, order = append(slices.Clone(here.in), s), here.order
	}
	if s != nil && name == s.ID.Text {
		return fmt.Sprintf("step %s is this one, and has no output yet; in its own key output, its result is output", name)
	}
	if slices.ContainsFunc(around, func(a *spec.Step) bool { return a.ID.Text == name }) {
		return fmt.Sprintf("step %s is not finished here: this is inside it", name)
	}
	if target.order > order {
		return fmt.Sprintf("step %s comes later; a step sees only the steps before it", name)
	}
	for _, outer := range target.in {
		if !slices.Contains(around, outer) {
			return fmt.Sprintf("step %s is inside %s: only steps.%s.output can be seen from here", name, outer.ID.Text, outer.ID.Text)
		}
	}
	return fmt.Sprintf("step %s is in another part of %s and cannot be seen from here", name, target.in[len(target.in)-1].ID.Text)
}

// block checks steps and returns the shape of the last result.
func (c *checker) block(steps []spec.Step, v *visible) (last *expr.Shape) {
	for i := range steps {
		s := &steps[i]
		out := c.step(s, *v)
		v.steps = append(v.steps, expr.Field{Name: s.ID.Text, Shape: stepShape(out)})
		if last = out; s.If != nil { // it may be skipped
			last = nil
		}
	}
	return last
}

// stepShape returns the shape of steps.ID for a step.
func stepShape(out *expr.Shape) *expr.Shape {
	return &expr.Shape{Type: expr.Map, Fields: []expr.Field{{Name: "output", Shape: out}, {Name: "status", Shape: &expr.Shape{Type: expr.String}}, {Name: "error", Shape: faultShape()}}}
}

// faultShape returns the shape of an error.
func faultShape() *expr.Shape {
	out := object("kind", "message", "hint", "step")
	out.Fields = append(out.Fields, expr.Field{Name: "line", Shape: &expr.Shape{Type: expr.Int}})
	return out
}

// step checks one step and returns the shape of its output.
func (c *checker) step(s *spec.Step, v visible) *expr.Shape {
	scope := c.scopeAt(v, s)
	if s.If != nil {
		c.condition(scope, *s.If, map[bool]string{false: "the step never runs", true: "leave it out"})
	}
	if s.Cache != nil && s.Cache.Key != nil {
		c.value(scope, *s.Cache.Key)
	}
	if s.Idempotency != nil {
		c.value(scope, *s.Idempotency)
	}
	out := c.action(s, v, scope)
	if s.Output != nil {
		out = c.value(scope.With(expr.Var{Name: "output", Type: expr.Any, Shape: out}), *s.Output)
	}
	return out
}

func (c *checker) action(s *spec.Step, v visible, scope template.Scope) *expr.Shape {
	switch do := s.Do.(type) {
	case *spec.Tool:
		return c.tool(s, do, scope)
	case *spec.Code:
		return c.code(do, scope)
	case *spec.Skill:
		c.skill(do, scope)
	case *spec.Plugin:
		c.variables(scope, do.With)
	case *spec.Task:
		return c.task(do, scope)
	case *spec.Nested:
		return c.checkNested(do, scope)
	case *spec.Parallel:
		return c.parallel(do, v)
	case *spec.ForEach:
		return c.forEach(do, v, scope)
	case *spec.Switch:
		return c.choice(do, v, scope)
	case *spec.While:
		return c.while(s, do, v)
	case *spec.Wait:
		return c.wait(do, scope)
	case *spec.Form:
		return c.form(do, scope)
	case *spec.Try:
		return c.try(do, v)
	}
	return nil
}

func (c *checker) parallel(do *spec.Parallel, v visible) *expr.Shape {
	out := &expr.Shape{Type: expr.Map}
	for _, b := range do.Branches {
		out.Fields = append(out.Fields, expr.Field{Name: b.Name.Text, Shape: c.block(b.Steps, v.inside())})
	}
	return out
}

func (c *checker) forEach(do *spec.ForEach, v visible, scope template.Scope) *expr.Shape {
	list := c.value(scope, do.In)
	var item *expr.Shape
	switch {
	case isUnknown(list):
	case list.Type == expr.List:
		item = list.Elem
	default:
		hint := "for_each takes a list"
		if list.Type == expr.Map {
			hint += "; of a map, x.map(k, x[k]) is the list of its values"
		}
		c.errorf(do.In.Pos, "this is of type %s: %s", list.Type, hint)
	}
	as, index := or(do.As.Text, "item"), or(do.Index.Text, "index")
	last := c.block(do.Steps, v.inside(expr.Var{Name: as, Type: expr.Any, Shape: item}, whole(index)))
	return &expr.Shape{Type: expr.List, Elem: last}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// whole returns an integer variable.
func whole(name string) expr.Var {
	return expr.Var{Name: name, Type: expr.Any, Shape: &expr.Shape{Type: expr.Int}}
}

func (c *checker) choice(do *spec.Switch, v visible, scope template.Scope) *expr.Shape {
	var all []*expr.Shape
	for _, one := range do.Cases {
		c.condition(scope, one.When, map[bool]string{false: "the case is never taken", true: "the cases after it are never taken; use default"})
		all = append(all, c.block(one.Steps, v.inside()))
	}
	all = append(all, c.block(do.Default, v.inside()))
	return common(all)
}

// common returns the shape that all have in common; only the type if they differ.
func common(all []*expr.Shape) *expr.Shape {
	for _, s := range all {
		if s == nil || s.Type != all[0].Type {
			return nil
		}
	}
	if all[0].Type == expr.Map && len(all) > 1 {
		return &expr.Shape{Type: expr.Map, Open: true}
	}
	return &expr.Shape{Type: all[0].Type, Fields: all[0].Fields, Open: all[0].Open}
}

func (c *checker) while(s *spec.Step, do *spec.While, v visible) *expr.Shape {
	vars := []expr.Var{whole("index"), {Name: "last", Type: expr.Any}}
	c.condition(c.scopeAt(*v.inside(vars...), s), do.When, map[bool]string{false: "the loop never runs"})
	return c.block(do.Steps, v.inside(vars...))
}

func (c *checker) wait(do *spec.Wait, scope template.Scope) *expr.Shape {
	for _, v := range []*spec.Value{do.For, do.Until} {
		if v == nil {
			continue
		}
		if got := c.value(scope, *v); !isUnknown(got) && got.Type != expr.String {
			c.errorf(v.Pos, `this is of type %s: a duration is a text such as "10m", and a time one such as "2026-11-22T10:00:00Z"`, got.Type)
		}
	}
	if do.Approval == nil {
		return nil
	}
	c.value(scope, do.Approval.Message)
	out := object("by", "note")
	out.Fields = append(out.Fields, expr.Field{Name: "approved", Shape: &expr.Shape{Type: expr.Bool}})
	return out
}

func (c *checker) try(do *spec.Try, v visible) *expr.Shape {
	out := c.block(do.Steps, v.inside())
	as := or(do.As.Text, "error")
	caught := c.block(do.Catch, v.inside(expr.Var{Name: as, Type: expr.Any, Shape: faultShape()}))
	c.block(do.Finally, v.inside())
	if do.Catch == nil {
		return out
	}
	return common([]*expr.Shape{out, caught})
}

// variableName matches the variable names of programs that the gateway accepts.
var variableName = regexp.MustCompile(`^(_?[A-Za-z][A-Za-z0-9_]{0,63}|_)$`)

// variables checks the variables of a program.
func (c *checker) variables(in template.Scope, with spec.Value) {
	for _, m := range with.Members {
		if !variableName.MatchString(m.Name.Text) {
			c.errorf(m.Name.Pos, "a variable of a program cannot be called %q: use a letter, then letters, digits and _", m.Name.Text)
		}
	}
	c.value(in, with)
}

func (c *checker) code(do *spec.Code, scope template.Scope) *expr.Shape {
	c.variables(scope, do.With)
	if at := strings.Index(do.Text.Text, "${{"); at >= 0 && do.File == nil {
		c.warnf(do.Text.At(at), `expressions are not evaluated in program text: pass the value as a variable, in "with"`)
	}
	if c.o.Environments != nil && do.Environment.Text != "" && !slices.Contains(c.o.Environments, do.Environment.Text) {
		c.errorf(do.Environment.Pos, "%s", noSuch("environment", do.Environment.Text, c.o.Environments, `none is set up under "environments" in upstreams.yaml`))
	}
	return shapeOf(do.Returns)
}

func (c *checker) skill(do *spec.Skill, scope template.Scope) {
	c.variables(scope, do.With)
	if do.With.Kind == spec.String {
		c.errorf(do.With.Pos, "the arguments of a skill must be written by name")
	}
	name, function, ok := strings.Cut(do.Name.Text, ".")
	if !ok || c.o.Skills == nil {
		return
	}
	functions, known := c.o.Skills(name)
	switch {
	case !known:
		c.errorf(do.Name.Pos, "there is no skill %s; sallyport skills lists what there is", name)
	case len(functions) > 0 && !slices.Contains(functions, function):
		c.errorf(do.Name.Pos, "skill %s: %s", name, noSuch("function", function, functions, "it has none"))
	}
}
