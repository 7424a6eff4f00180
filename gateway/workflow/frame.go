package workflow

import (
	"context"
	"encoding/json"
	"maps"

	"sallyport/gateway/workflow/template"
	"sallyport/internal/tool"
)

// frame is what expressions see at one place of a run. It belongs to one goroutine.
type frame struct {
	vars  map[string]any
	steps map[string]any
	// chain are the names of the workflows that it stands in, outermost first.
	chain []string
}

func newFrame(vars map[string]any, chain []string) *frame {
	f := &frame{vars: maps.Clone(vars), steps: map[string]any{}, chain: chain}
	f.vars["steps"] = f.steps
	return f
}

// within returns a frame for steps within one: it sees the same, and names besides; what it adds is its own.
func (f *frame) within(names map[string]any) *frame {
	inner := &frame{vars: maps.Clone(f.vars), steps: maps.Clone(f.steps), chain: f.chain}
	maps.Copy(inner.vars, names)
	inner.vars["steps"] = inner.steps
	return inner
}

// put shows what a step came to to those after it.
func (f *frame) put(id string, r result) {
	seen := map[string]any{"output": r.value, "status": r.status, "error": nil}
	if r.fault != nil {
		seen["error"] = faultValue(*r.fault)
	}
	f.steps[id] = seen
}

// eval evaluates a binding, with further names.
func (f *frame) eval(ctx context.Context, b *template.Binding, names map[string]any) (any, error) {
	vars := f.vars
	if len(names) > 0 {
		vars = maps.Clone(vars)
		maps.Copy(vars, names)
	}
	return b.Eval(ctx, vars)
}

// text evaluates a binding that has to come to a text.
func (f *frame) text(ctx context.Context, b *template.Binding, what string) (string, error) {
	v, err := f.eval(ctx, b, nil)
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", &tool.Error{Kind: tool.Invalid, Message: what + " comes to no text"}
	}
	return s, nil
}

// result is the result of a step. Its value is immutable.
type result struct {
	status string
	value  any
	raw    json.RawMessage // of the value, where it is known
	fault  *Fault
	final  bool // the step's "output" has no say in it
}

// faultValue is a fault as expressions see it.
func faultValue(f Fault) map[string]any {
	return map[string]any{"kind": string(f.Kind), "message": f.Message, "hint": f.Hint, "step": f.Step}
}
