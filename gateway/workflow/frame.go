package workflow

import (
	"context"
	"encoding/json"
	"maps"

	"sallyport/gateway/workflow/template"
	"sallyport/internal/tool"
)

// frame holds the variables of expressions at one location of a run. It is not safe for concurrent use.
type frame struct {
	vars  map[string]any
	steps map[string]any
	// chain are the names of the enclosing workflows, outermost first.
	chain []string
}

func newFrame(vars map[string]any, chain []string) *frame {
	f := &frame{vars: maps.Clone(vars), steps: map[string]any{}, chain: chain}
	f.vars["steps"] = f.steps
	return f
}

// within returns a frame for a nested block: a copy of f with additional variables. Changes of the copy do not affect f.
func (f *frame) within(names map[string]any) *frame {
	inner := &frame{vars: maps.Clone(f.vars), steps: maps.Clone(f.steps), chain: f.chain}
	maps.Copy(inner.vars, names)
	inner.vars["steps"] = inner.steps
	return inner
}

// put makes the result of a step visible to later steps.
func (f *frame) put(id string, r result) {
	seen := map[string]any{"output": r.value, "status": r.status, "error": nil}
	if r.fault != nil {
		seen["error"] = faultValue(*r.fault)
	}
	f.steps[id] = seen
}

// eval evaluates a binding, with additional variables.
func (f *frame) eval(ctx context.Context, b *template.Binding, names map[string]any) (any, error) {
	vars := f.vars
	if len(names) > 0 {
		vars = maps.Clone(vars)
		maps.Copy(vars, names)
	}
	return b.Eval(ctx, vars)
}

// text evaluates a binding to a string. what names it in errors.
func (f *frame) text(ctx context.Context, b *template.Binding, what string) (string, error) {
	v, err := f.eval(ctx, b, nil)
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", &tool.Error{Kind: tool.Invalid, Message: what + " is not a text"}
	}
	return s, nil
}

// result is the result of a step. Its value is immutable.
type result struct {
	status string
	value  any
	raw    json.RawMessage // value as JSON, nil if not encoded yet
	fault  *Fault
	final  bool // the step's "output" is not applied
}

// faultValue returns a fault as a value for expressions.
func faultValue(f Fault) map[string]any {
	return map[string]any{"kind": string(f.Kind), "message": f.Message, "hint": f.Hint, "step": f.Step}
}
