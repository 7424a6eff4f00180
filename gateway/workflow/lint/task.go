package lint

import (
	"slices"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
)

// task checks a task in words, and returns the shape of its output.
func (c *checker) task(do *spec.Task, scope template.Scope) *expr.Shape {
	c.value(scope, do.Words)
	c.value(scope, do.With)
	for _, name := range do.Only {
		if c.o.Upstreams != nil && !slices.Contains(c.o.Upstreams, name.Text) {
			c.errorf(name.Pos, "%s", noSuch("upstream", name.Text, c.o.Upstreams, "none is set up"))
		}
	}
	if c.o.Models != nil && do.Model.Text != "" && !slices.Contains(c.o.Models, do.Model.Text) {
		c.errorf(do.Model.Pos, "%s", noSuch("model", do.Model.Text, c.o.Models, `none is set up under "models" in upstreams.yaml`))
	}
	return shapeOf(do.Returns)
}

// task plans a task in words.
func (p *planner) task(f *frame, do *spec.Task, at *PlannedStep) {
	words := p.value(f, do.Words)
	if text, ok := words.show.(string); ok {
		at.What = text
	}
	p.arguments(f, do.With, at)
	if at.Problem == "" {
		at.Problem = words.problem
	}
	at.Notes = append(at.Notes, "the programs that it writes, and the tools that they call, are known only at run time")
}
