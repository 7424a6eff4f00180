package lint

import (
	"maps"
	"slices"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// tool checks a tool step and returns the shape of its result.
func (c *checker) tool(s *spec.Step, do *spec.Tool, scope template.Scope) *expr.Shape {
	t := c.checkCall(do, scope)
	if t == nil {
		return nil
	}
	c.checkRepeat(s, do, t)
	return resultOf(t)
}

// checkCall checks a call and returns its tool, nil if unknown.
func (c *checker) checkCall(do *spec.Tool, scope template.Scope) *tool.Tool {
	id, err := tool.ParseID(do.Name.Text)
	if err != nil {
		c.errorf(do.Name.Pos, "%s", tool.AsError(err).Error())
		c.value(scope, do.With)
		return nil
	}
	t := c.tools[id]
	if t == nil {
		c.unknownTool(id, do.Name.Pos)
		c.value(scope, do.With)
		return nil
	}
	argChecker{c}.arguments(scope, do.With, toolParameters(id.String(), t.Input), do.Name.Pos)
	return t
}

// unknownTool reports an unknown tool, with a suggestion.
func (c *checker) unknownTool(id tool.ID, at spec.Pos) {
	if c.o.Tools == nil {
		return
	}
	var own, others []string
	upstreams := map[string]bool{}
	for other := range c.tools {
		upstreams[other.Upstream] = true
		if other.Upstream == id.Upstream {
			own = append(own, other.Name)
		} else if other.Name == id.Name {
			others = append(others, other.String())
		}
	}
	slices.Sort(own)
	slices.Sort(others)
	for _, name := range c.o.Upstreams {
		upstreams[name] = true
	}
	switch {
	case len(own) > 0 && len(others) == 0:
		c.errorf(at, "upstream %s: %s", id.Upstream, noSuch("tool", id.Name, own, ""))
	case len(others) > 0:
		c.errorf(at, "there is no tool %s; did you mean %q?", id, others[0])
	case slices.Contains(c.o.Upstreams, id.Upstream):
		c.warnf(at, "upstream %s is not connected, so its tools cannot be checked", id.Upstream)
	default:
		c.errorf(at, "%s", noSuch("upstream", id.Upstream, slices.Sorted(maps.Keys(upstreams)), "none is set up"))
	}
}

// checkRepeat warns of retry and cache settings that are unsafe for a tool that is not read-only or idempotent.
func (c *checker) checkRepeat(s *spec.Step, do *spec.Tool, t *tool.Tool) {
	a := t.Annotations
	if isTrue(a.ReadOnly) {
		return
	}
	if s.Cache != nil {
		c.warnf(do.Name.Pos, "%s does not declare itself read-only, and the step has a cache: while the cache is valid, the tool is not called", t.ID)
	}
	if isTrue(a.Idempotent) || s.Idempotency != nil {
		return
	}
	if s.Interrupted == "retry" {
		c.warnf(do.Name.Pos, `%s does not declare itself idempotent, and "interrupted: retry" may call it twice; "ask" asks a person`, t.ID)
	}
	if s.Retry != nil && (len(s.Retry.On) == 0 || slices.Contains(s.Retry.On, string(tool.Timeout))) {
		c.warnf(do.Name.Pos, `%s does not declare itself idempotent, and after a timeout it may have done its work: exclude timeout from "retry.on", or give the step an "idempotency_key"`, t.ID)
	}
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

// checkNested checks a step that runs another workflow.
func (c *checker) checkNested(do *spec.Nested, scope template.Scope) *expr.Shape {
	other := c.o.Workflows[do.Name.Text]
	if do.Name.Text == c.d.Name {
		other = c.d
	}
	if other == nil {
		if c.o.Workflows != nil {
			c.errorf(do.Name.Pos, "%s", noSuch("workflow", do.Name.Text, slices.Sorted(maps.Keys(c.o.Workflows)), "this is the only one"))
		}
		c.value(scope, do.With)
		return nil
	}
	argChecker{c}.arguments(scope, do.With, inputParameters(other), do.Name.Pos)
	if circle := c.findCycle(other, []string{c.d.Name}); circle != nil {
		c.errorf(do.Name.Pos, "workflow %s would run itself: %s", c.d.Name, strings.Join(circle, ", which runs "))
	}
	out := &expr.Shape{Type: expr.Map}
	for _, o := range other.Outputs {
		out.Fields = append(out.Fields, expr.Field{Name: o.Name.Text, Shape: shapeOf(o.Schema)})
	}
	out.Absent = func(name string) string {
		return "workflow " + other.Name + ": " + noSuch("output", name, out.Names(), "it has none")
	}
	return out
}

// findCycle returns the path of nested workflows from a workflow back to this one, nil if there is none.
func (c *checker) findCycle(from *spec.Definition, by []string) (way []string) {
	if from.Name == c.d.Name {
		return append(slices.Clip(by), from.Name)
	}
	if slices.Contains(by[1:], from.Name) { // a cycle of other workflows, reported with them
		return nil
	}
	spec.Walk(from.Steps, func(s *spec.Step, _ []*spec.Step) {
		do, ok := s.Do.(*spec.Nested)
		if !ok || way != nil {
			return
		}
		next := c.o.Workflows[do.Name.Text]
		if do.Name.Text == c.d.Name {
			next = c.d
		}
		if next != nil {
			way = c.findCycle(next, append(slices.Clip(by), from.Name))
		}
	})
	return way
}
