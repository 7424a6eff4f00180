package lint

import (
	"slices"
	"strings"
	"time"

	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/expr"
	"sallyport/internal/store"
)

// triggers checks schedules and webhooks.
func (c *checker) triggers() {
	for _, s := range c.d.On.Schedules {
		if s.Cron.Text != "" {
			c.cron(s)
		}
		argChecker{c}.arguments(template.Only(c.envVar()), s.With, inputParameters(c.d), s.Pos)
	}
	w := c.d.On.Webhook
	if w == nil {
		return
	}
	if c.o.Secrets != nil && !slices.Contains(c.o.Secrets, w.Secret.Text) {
		c.errorf(w.Secret.Pos, "%s", noSuch("secret", w.Secret.Text, c.o.Secrets, "workflows.secrets in upstreams.yaml has none"))
	}
	if w.With != nil {
		request := &expr.Shape{Type: expr.Map, Fields: []expr.Field{{Name: "body"}, {Name: "headers", Shape: &expr.Shape{Type: expr.Map, Elem: &expr.Shape{Type: expr.String}}}}}
		argChecker{c}.arguments(template.Only(c.envVar(), expr.Var{Name: "request", Type: expr.Any, Shape: request}), *w.With, inputParameters(c.d), w.Pos)
	}
}

func (c *checker) cron(s spec.Schedule) {
	if _, err := time.LoadLocation(s.Zone.Text); err != nil {
		c.errorf(s.Zone.Pos, "there is no time zone %s; write it as in Europe/Berlin", s.Zone.Text)
		return
	}
	if _, err := store.Next(s.Cron.Text, s.Zone.Text, time.Now()); err != nil {
		c.errorf(s.Cron.Pos, "%s", strings.TrimPrefix(err.Error(), store.ErrInvalid.Error()+": "))
	}
}

// inputs checks the defaults of inputs. Expressions may use env and inputs.
func (c *checker) inputs() {
	scope := template.Only(c.inputsVar(), c.envVar())
	for _, in := range c.d.Inputs {
		if in.Default != nil {
			argChecker{c}.checkSchema(scope, *in.Default, in.Schema, "the default of input "+in.Name.Text)
		}
	}
}

func (c *checker) outputs(v visible) {
	scope := c.scopeAt(v, nil)
	for _, out := range c.d.Outputs {
		argChecker{c}.checkSchema(scope, out.Value, out.Schema, "the output "+out.Name.Text)
	}
}

// form checks the fields with package forms, and the calls of their sources.
func (c *checker) form(do *spec.Form, scope template.Scope) *expr.Shape {
	_, problems := forms.Compile(scope, do)
	c.addProblems(nil, problems)
	scope = scope.With(expr.Var{Name: "form", Type: expr.Any})
	for _, f := range do.Fields {
		c.source(f.From, scope)
		got := c.source(f.Options, scope)
		if !isUnknown(got) && got.Type != expr.List {
			c.errorf(sourcePos(f.Options), "options must be a list, and this is of type %s", got.Type)
		}
	}
	return forms.Shape(do.Fields)
}

func sourcePos(s *spec.Source) spec.Pos {
	switch {
	case s.Output != nil:
		return s.Output.Pos
	case s.Value != nil:
		return s.Value.Pos
	}
	return s.Tool.Name.Pos
}

func (c *checker) source(s *spec.Source, scope template.Scope) (out *expr.Shape) {
	switch {
	case s == nil:
		return nil
	case s.Value != nil:
		return c.value(scope, *s.Value)
	}
	if t := c.checkCall(s.Tool, scope); t != nil {
		out = resultOf(t)
	}
	if s.Output != nil {
		out = c.value(scope.With(expr.Var{Name: "output", Type: expr.Any, Shape: out}), *s.Output)
	}
	return out
}
