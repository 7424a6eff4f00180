package template

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"sallyport/internal/expr"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// shownSource limits the expression text in an error.
const shownSource = 120

// Eval evaluates the value to the types of [expr.Decode]: nil, bool, int64, float64, string, []any or map[string]any.
// The result and vars must not be modified. The error is that of ctx, or a *[tool.Error] that quotes the expression but no value.
func (b *Binding) Eval(ctx context.Context, vars map[string]any) (any, error) {
	return b.eval(ctx, vars, nil)
}

// Partial is Eval with some of vars [expr.Unknown]: an expression that depends on them is replaced by unknown(expression text).
func (b *Binding) Partial(ctx context.Context, vars map[string]any, unknown func(source string) any) (any, error) {
	return b.eval(ctx, vars, unknown)
}

func (b *Binding) eval(ctx context.Context, vars map[string]any, unknown func(string) any) (any, error) {
	e := evaluation{ctx: ctx, left: maxSize, unknown: unknown}
	if len(b.programs) > 0 {
		e.vars = expr.Bind(vars)
	}
	value, err := e.value(&b.root)
	if err != nil {
		return nil, err
	}
	return value, nil
}

// Bool evaluates a boolean.
func (b *Binding) Bool(ctx context.Context, vars map[string]any) (bool, error) {
	value, err := b.Eval(ctx, vars)
	if err != nil {
		return false, err
	}
	truth, ok := value.(bool)
	if !ok {
		return false, &tool.Error{Kind: tool.Invalid, Message: "a condition is neither true nor false"}
	}
	return truth, nil
}

type evaluation struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call of Eval
	vars expr.Vars
	left int // remaining size of the result, in bytes

	unknown func(source string) any
}

func (e *evaluation) value(n *node) (any, error) {
	switch {
	case n.program != nil:
		return e.run(n.program)
	case n.join != nil:
		return e.text(n.join)
	case n.items != nil:
		return e.list(n.items)
	case n.members != nil:
		return e.object(n.members)
	}
	return n.fixed, nil
}

func (e *evaluation) run(p *program) (any, error) {
	value, err := p.Eval(e.ctx, e.vars)
	if e.unknown != nil && errors.Is(err, expr.ErrUnknown) {
		return e.unknown(p.source), nil
	}
	if err == nil {
		if value = canonical(value, &e.left); e.left < 0 {
			err = expr.ErrSize
		}
	}
	if err != nil {
		return nil, p.evalError(e.ctx, err)
	}
	return value, nil
}

func (p *program) evalError(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return err
	}
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("${{ %s }} in line %d: %v", sanitize.Line(p.source, shownSource), p.line, err), Err: err}
}

func (e *evaluation) text(parts []node) (any, error) {
	var out strings.Builder
	for i := range parts {
		value, err := e.value(&parts[i])
		if err != nil {
			return nil, err
		}
		text, err := expr.Text(value)
		if err != nil {
			return nil, parts[i].program.evalError(e.ctx, err)
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

func (e *evaluation) list(items []node) (any, error) {
	out := make([]any, len(items))
	for i := range items {
		var err error
		if out[i], err = e.value(&items[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (e *evaluation) object(members []member) (any, error) {
	out := make(map[string]any, len(members))
	for i := range members {
		value, err := e.value(&members[i].value)
		if err != nil {
			return nil, err
		}
		out[members[i].name] = value
	}
	return out, nil
}

// canonical returns a value as it is after a round trip through JSON, so that a run that continues after a crash
// sees the same. It subtracts its size from left, which may become negative.
func canonical(value any, left *int) any {
	*left -= 2
	switch v := value.(type) {
	case float64:
		return number(v)
	case string:
		*left -= len(v)
		if !utf8.ValidString(v) {
			return strings.ToValidUTF8(v, "\uFFFD")
		}
	case []any:
		for i, item := range v {
			v[i] = canonical(item, left)
		}
	case map[string]any:
		for name, item := range v {
			*left -= len(name) + 2
			v[name] = canonical(item, left)
		}
	}
	return value
}

// number returns an int64 for an integral number.
func number(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) < math.MaxInt64 {
		return int64(f)
	}
	return f
}
