package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/tool"
)

// step runs one step, or returns its result from the log. Errors are *failure or errGone.
func (r *run) step(ctx context.Context, f *frame, n *node, at spot) (result, error) {
	if before, ok, err := at.past.ended(); ok || err != nil {
		return before, before.error(err)
	}
	if err := r.stopped(ctx); err != nil {
		return result{}, r.failed(ctx, ctx, at.path, n.Line, err)
	}
	out, err := r.perform(ctx, f, n, at)
	if err != nil {
		err = r.failed(ctx, ctx, at.path, n.Line, err)
	}
	return r.end(ctx, at, n.Line, out, err, leaf(n))
}

// error returns the error of a result from the log.
func (r result) error(unreadable error) error {
	if unreadable != nil {
		return &failure{fault: Fault{Kind: tool.Internal, Message: "the log of the run cannot be read"}}
	}
	if r.status == outcomeFailed || r.status == outcomeCanceled {
		f := Fault{Kind: tool.Internal, Message: r.status}
		if r.fault != nil {
			f = *r.fault
		}
		return &failure{f, r.status == outcomeCanceled}
	}
	return nil
}

// leaf reports whether the result of a step cannot be derived again from nested steps.
func leaf(n *node) bool {
	switch n.Do.(type) {
	case *spec.Tool, *spec.Code, *spec.Skill, *spec.Wait, *spec.Form:
		return true
	}
	return false
}

// perform runs a step if its condition is true, and uses its cache and idempotency key.
func (r *run) perform(ctx context.Context, f *frame, n *node, at spot) (result, error) {
	if n.cond != nil {
		holds, err := n.cond.Bool(ctx, f.vars)
		if err != nil {
			return result{}, err
		}
		if !holds {
			return result{status: outcomeSkipped}, nil
		}
	}
	keeps, err := keptRun{r}.keeps(ctx, f, n)
	if err != nil {
		return result{}, err
	}
	leave, err := r.engine.turns.take(ctx, keeps)
	if err != nil {
		return result{}, err
	}
	defer leave()
	if out, ok, err := (keptRun{r}).kept(ctx, keeps); ok || err != nil {
		return out, err
	}
	out, err := r.attempts(ctx, f, n, at)
	if err == nil {
		err = keptRun{r}.keep(ctx, keeps, out)
	}
	return out, err
}

// end logs the result of a step. Unless durable, the event is buffered.
func (r *run) end(ctx context.Context, at spot, line int, out result, err error, durable bool) (result, error) {
	if errors.Is(err, errGone) {
		return result{}, err
	}
	e := Event{Kind: Ended, Path: at.path, Outcome: out.status}
	if err == nil {
		if e.Output, err = out.json(); err != nil {
			err = &failure{fault: faultOf(err, at.path, line)}
		}
	}
	if f, ok := errors.AsType[*failure](err); ok {
		e.Outcome, e.Output, e.Error = f.outcome(), nil, &f.fault
		out = result{status: e.Outcome, fault: e.Error}
	}
	if durable {
		e.Read = r.read.fresh(ctx)
		if failed := r.log.write(ctx, e); failed != nil {
			return result{}, failed
		}
	} else {
		r.log.note(e)
	}
	return out, r.count(at, line, err)
}

// count counts a finished step, and returns an error if the run exceeds a limit.
func (r *run) count(at spot, line int, err error) error {
	r.state.ended(int(r.steps.Add(1)))
	if full := r.meter.step(); full != nil && err == nil {
		err = &failure{fault: faultOf(full, at.path, line)}
	}
	return err
}

// json returns the value as JSON for its event.
func (r result) json() (json.RawMessage, error) {
	if r.raw != nil || r.status == outcomeSkipped {
		return r.raw, nil
	}
	return encode(r.value, maxList)
}

// attempts runs a step with retries.
func (r *run) attempts(ctx context.Context, f *frame, n *node, at spot) (result, error) {
	attempt := max(at.past.beganAt(), 1)
	if at.past != nil && at.past.resting {
		if err := r.rest(ctx, at, at.past.until); err != nil {
			return result{}, err
		}
		attempt, at = attempt+1, at.anew()
	}
	for {
		out, err := r.attempt(ctx, f, n, at, attempt)
		if err == nil || ctx.Err() != nil || !n.again(attempt, err) || at.past.interrupted(attempt) && faultOf(err, "", 0).Kind == tool.Canceled {
			return out, err
		}
		fault := faultOf(err, at.path, n.Line)
		until := time.Now().Add(n.pause(attempt))
		if err := r.log.write(ctx, Event{Kind: Retrying, Path: at.path, Attempt: attempt, Error: &fault, Until: until.UTC()}); err != nil {
			return result{}, err
		}
		if err := r.meter.step(); err != nil {
			return result{}, err
		}
		if err := r.rest(ctx, at, until); err != nil {
			return result{}, err
		}
		attempt, at = attempt+1, at.anew()
	}
}

// again reports whether a step is retried after a failed attempt.
func (n *node) again(attempt int, err error) bool {
	if n.Retry == nil || attempt > n.Retry.Count || errors.Is(err, errGone) {
		return false
	}
	kind := faultOf(err, "", 0).Kind
	if len(n.Retry.On) > 0 {
		return slices.Contains(n.Retry.On, string(kind))
	}
	return kind == tool.Timeout || kind == tool.Upstream || kind == tool.Limit
}

// pause returns the delay after a failed attempt.
func (n *node) pause(attempt int) time.Duration {
	wait, most := n.Retry.Wait, n.Retry.Max
	if wait == 0 {
		wait = time.Second
	}
	if most == 0 {
		most = max(time.Minute, wait)
	}
	for ; attempt > 1 && wait < most; attempt-- {
		wait *= 2
	}
	return min(wait, most)
}

// attempt runs a step once within its timeout, and evaluates its output.
func (r *run) attempt(ctx context.Context, f *frame, n *node, at spot, attempt int) (result, error) {
	inner, stop := bounded(ctx, n.Timeout, tookLonger(n.Timeout))
	defer stop()
	inner, span := r.stepSpan(inner, n, at, attempt)
	out, err := r.do(inner, f, n, at, attempt)
	span.End(wentHow(out, err))
	if err != nil {
		return result{}, r.failed(ctx, inner, at.path, n.Line, err)
	}
	if n.output == nil || out.final {
		return out, nil
	}
	v, err := f.eval(ctx, n.output, map[string]any{"output": out.value})
	if err != nil {
		return result{}, err
	}
	return normal(v, maxOutput)
}

// normal returns the result for a value after a round trip through JSON.
func normal(v any, most int) (result, error) {
	raw, err := encode(v, most)
	if err != nil {
		return result{}, err
	}
	value, err := decode(raw)
	if err != nil {
		return result{}, err
	}
	return result{status: outcomeOK, value: value, raw: raw}, nil
}

// do runs the action of the step.
func (r *run) do(ctx context.Context, f *frame, n *node, at spot, attempt int) (result, error) {
	if !leaf(n) && at.past.beganAt() != attempt {
		if _, nested := n.Do.(*spec.Nested); !nested { // it logs more itself
			r.log.note(Event{Kind: Began, Path: at.path, Attempt: attempt})
		}
	}
	switch do := n.Do.(type) {
	case *spec.Tool:
		return toolRun{r}.tool(ctx, f, n, do, at, attempt)
	case *spec.Code:
		return codeRun{r}.code(ctx, f, n, do, at, attempt)
	case *spec.Skill:
		return codeRun{r}.skill(ctx, f, n, do, at, attempt)
	case *spec.Nested:
		return r.nested(ctx, f, n, do, at, attempt)
	case *spec.Parallel:
		return blockRun{r}.parallel(ctx, f, n, at)
	case *spec.ForEach:
		return blockRun{r}.forEach(ctx, f, n, do, at)
	case *spec.Switch:
		return blockRun{r}.choose(ctx, f, n, at)
	case *spec.While:
		return blockRun{r}.while(ctx, f, n, do, at)
	case *spec.Wait:
		return waitRun{r}.wait(ctx, f, n, do, at, attempt)
	case *spec.Form:
		return formRun{r}.form(ctx, f, n, do, at, attempt)
	case *spec.Try:
		return blockRun{r}.try(ctx, f, n, do, at)
	}
	return result{}, &tool.Error{Kind: tool.Internal, Message: fmt.Sprintf("a step of kind %T cannot be run", n.Do)}
}

// began logs the start of an attempt; the event is on disk when it returns. A large input is replaced by its hash.
func (r *run) began(ctx context.Context, at spot, attempt int, e Event) error {
	if len(e.Input) > maxInput {
		sum := sha256.Sum256(e.Input)
		e.Input = fmt.Appendf(nil, `{"sha256":%q,"bytes":%d}`, hex.EncodeToString(sum[:]), len(e.Input))
	}
	e.Kind, e.Path, e.Attempt = Began, at.path, attempt
	return r.log.write(ctx, e)
}

// rest waits until a retry may start.
func (r *run) rest(ctx context.Context, at spot, until time.Time) error {
	if r.engine.opts.Hurry {
		return nil
	}
	if time.Until(until) > longRest {
		return waitRun{r}.sleep(ctx, at, until)
	}
	return pause(ctx, until)
}
