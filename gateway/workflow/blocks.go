package workflow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// errSibling is the cause with which the siblings of a failed step are canceled.
var errSibling = &tool.Error{Kind: tool.Canceled, Message: "canceled: a sibling step failed"}

// blockRun runs the steps that contain others.
type blockRun struct{ *run }

// runBlock runs the steps of a branch or of one loop iteration and logs their end.
func (r blockRun) runBlock(ctx context.Context, f *frame, steps []*node, at location, line int) (any, error) {
	if before, ok, err := at.history.endResult(); ok || err != nil {
		return before.value, before.error(err)
	}
	if err := r.stopError(ctx); err != nil {
		return nil, r.newFailure(ctx, ctx, at.path, line, err)
	}
	v, err := r.sequence(ctx, f, steps, at)
	if err != nil {
		err = r.newFailure(ctx, ctx, at.path, line, err)
	}
	out, err := r.end(ctx, at, line, result{status: outcomeOK, value: v}, err, false)
	return out.value, err
}

// parallel runs branches concurrently.
func (r blockRun) parallel(ctx context.Context, f *frame, n *node, at location) (result, error) {
	values := make([]any, len(n.blocks))
	err := r.runConcurrent(ctx, len(n.blocks), len(n.blocks), func(ctx context.Context, i int) (err error) {
		b := n.blocks[i]
		values[i], err = r.runBlock(ctx, f.within(nil), b.steps, at.child(b.name), n.Line)
		return err
	})
	if err != nil {
		return result{}, err
	}
	all := make(map[string]any, len(values))
	for i, b := range n.blocks {
		all[b.name] = values[i]
	}
	return result{status: outcomeOK, value: all}, nil
}

// runConcurrent calls do for 0 to count-1 in at most width goroutines. After the first error it cancels the others and starts no more; it returns that error.
func (r blockRun) runConcurrent(ctx context.Context, count, width int, do func(ctx context.Context, i int) error) error {
	width = min(width, count)
	if width < 1 {
		return nil
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next, left atomic.Int64
	var once sync.Once
	var first error
	left.Store(int64(width))
	r.state.addActive(width - 1)
	var work sync.WaitGroup
	for range width {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					once.Do(func() { first = err })
					stop(errSibling)
					break
				}
			}
			if left.Add(-1) > 0 { // the last one leaves its place to the caller, which continues
				r.state.addActive(-1)
			}
		})
	}
	work.Wait()
	return first
}

// forEach runs its steps for each item of a list.
func (r blockRun) forEach(ctx context.Context, f *frame, n *node, do *spec.ForEach, at location) (result, error) {
	v, err := f.eval(ctx, n.with, nil)
	if err != nil {
		return result{}, err
	}
	items, ok := v.([]any)
	if !ok {
		return result{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("for_each needs a list, not %s", expr.Describe(v))}
	}
	if err := r.meter.addPasses(len(items)-at.history.passes(), len(n.blocks[0].steps)); err != nil {
		return result{}, err
	}
	as, number := loopName(do.As, "item"), loopName(do.Index, "index")
	values := make([]any, len(items))
	err = r.runConcurrent(ctx, len(items), max(do.Concurrency, 1), func(ctx context.Context, i int) (err error) {
		inner := f.within(map[string]any{as: items[i], number: int64(i)})
		values[i], err = r.runBlock(ctx, inner, n.blocks[0].steps, at.iteration(i), n.Line)
		return err
	})
	return result{status: outcomeOK, value: values}, err
}

// choose runs the steps of the first case with a true condition, else the default.
func (r blockRun) choose(ctx context.Context, f *frame, n *node, at location) (result, error) {
	chosen := len(n.blocks) - 1
	for i, when := range n.when {
		holds, err := when.Bool(ctx, f.vars)
		if err != nil {
			return result{}, err
		}
		if holds {
			chosen = i
			break
		}
	}
	b := n.blocks[chosen]
	v, err := r.sequence(ctx, f.within(nil), b.steps, at.block(b.name))
	return result{status: outcomeOK, value: v}, err
}

// block returns the location of a named block. A name such as "case[0]" is two path elements in the log.
func (p location) block(name string) location {
	inner := location{p.path + "." + name, p.history}
	for rest := name; rest != ""; {
		var first string
		first, rest = cutPath(rest)
		inner.history = inner.history.child(first)
	}
	return inner
}

// while repeats its steps while the condition is true.
func (r blockRun) while(ctx context.Context, f *frame, n *node, do *spec.While, at location) (result, error) {
	var last any
	for i := 0; ; i++ {
		inner := f.within(map[string]any{"index": int64(i), "last": last})
		holds, err := n.when[0].Bool(ctx, inner.vars)
		if err != nil {
			return result{}, err
		}
		if !holds {
			return result{status: outcomeOK, value: last}, nil
		}
		if i == do.Max {
			return result{}, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("the while condition still holds after %d iterations", do.Max), Hint: "raise max, or fix the condition"}
		}
		if _, ended, _ := at.history.child(index(i)).endResult(); !ended {
			if err := r.meter.addPasses(1, 0); err != nil {
				return result{}, err
			}
		}
		if last, err = r.runBlock(ctx, inner, n.blocks[0].steps, at.iteration(i), n.Line); err != nil {
			return result{}, err
		}
	}
}

// try runs the steps of try, those of catch if one fails, and those of finally in any case.
func (r blockRun) try(ctx context.Context, f *frame, n *node, do *spec.Try, at location) (result, error) {
	v, err := r.sequence(ctx, f.within(nil), n.blocks[0].steps, at.block("try"))
	if fault, ok := errors.AsType[*failure](err); ok && ctx.Err() == nil && do.Catch != nil {
		inner := f.within(map[string]any{loopName(do.As, "error"): faultValue(fault.fault)})
		v, err = r.sequence(ctx, inner, n.blocks[1].steps, at.block("catch"))
	}
	if finally := r.finally(ctx, f, n, at, err); finally != nil {
		return result{}, finally
	}
	return result{status: outcomeOK, value: v}, nil
}

// finally runs the finally steps. It returns the earlier error, if any, else its own.
func (r blockRun) finally(ctx context.Context, f *frame, n *node, at location, before error) error {
	if steps := n.blocks[2].steps; len(steps) > 0 && !errors.Is(before, errReleased) {
		if ctx.Err() != nil {
			bare, end := r.detach(ctx)
			defer end()
			ctx = bare
		}
		if _, err := r.sequence(ctx, f.within(nil), steps, at.block("finally")); errors.Is(err, errReleased) || before == nil {
			return err
		}
	}
	return before
}
