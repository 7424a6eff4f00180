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

	"sallyport/gateway/history"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// step runs one step, or returns its result from the log. Errors are *failure or errReleased.
func (r *run) step(ctx context.Context, f *frame, n *node, at location) (result, error) {
	if before, ok, err := at.history.endResult(); ok || err != nil {
		return before, before.error(err)
	}
	if err := r.stopError(ctx); err != nil {
		return result{}, r.newFailure(ctx, ctx, at.path, n.Line, err)
	}
	out, err := r.perform(ctx, f, n, at)
	if err != nil {
		err = r.newFailure(ctx, ctx, at.path, n.Line, err)
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
		return &failure{fault: f, canceled: r.status == outcomeCanceled}
	}
	return nil
}

// leaf reports whether the result of a step cannot be derived again from nested steps.
func leaf(n *node) bool {
	switch n.Do.(type) {
	case *spec.Tool, *spec.Code, *spec.Skill, *spec.Plugin, *spec.Task, *spec.Wait, *spec.Form:
		return true
	}
	return false
}

// perform runs a step if its condition is true, and uses its cache and idempotency key.
func (r *run) perform(ctx context.Context, f *frame, n *node, at location) (result, error) {
	if n.cond != nil {
		holds, err := n.cond.Bool(ctx, f.vars)
		if err != nil {
			return result{}, err
		}
		if !holds {
			return result{status: outcomeSkipped}, nil
		}
	}
	keeps, err := cacheRun{r}.cacheFor(ctx, f, n)
	if err != nil {
		return result{}, err
	}
	leave, err := r.engine.keyLocks.lock(ctx, keeps)
	if err != nil {
		return result{}, err
	}
	defer leave()
	if out, ok, err := (cacheRun{r}).load(ctx, keeps); ok || err != nil {
		return out, err
	}
	out, err := r.attempts(ctx, f, n, at)
	if err == nil {
		err = cacheRun{r}.save(ctx, keeps, out)
	}
	return out, err
}

// end logs the result of a step. Unless durable, the event is buffered.
func (r *run) end(ctx context.Context, at location, line int, out result, err error, durable bool) (result, error) {
	if errors.Is(err, errReleased) {
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
		e.Read = r.read.newLabels(ctx)
		if failed := r.log.write(ctx, e); failed != nil {
			return result{}, failed
		}
	} else {
		r.log.buffer(e)
	}
	return out, r.count(at, line, err)
}

// count counts a finished step, and returns an error if the run exceeds a limit.
func (r *run) count(at location, line int, err error) error {
	r.state.setSteps(int(r.steps.Add(1)))
	if full := r.meter.addStep(); full != nil && err == nil {
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
func (r *run) attempts(ctx context.Context, f *frame, n *node, at location) (result, error) {
	attempt := max(at.history.currentAttempt(), 1)
	if at.history != nil && at.history.retryPending {
		if err := r.delayRetry(ctx, at, at.history.retryAt); err != nil {
			return result{}, err
		}
		attempt, at = attempt+1, r.forRetry(at)
	}
	for {
		out, err := r.attemptUntilServed(ctx, f, n, at, attempt)
		if err == nil || ctx.Err() != nil || !n.shouldRetry(attempt, err) || at.history.interrupted(attempt) && faultOf(err, "", 0).Kind == tool.Canceled {
			return out, err
		}
		fault := faultOf(err, at.path, n.Line)
		until := time.Now().Add(n.retryDelay(attempt))
		if err := r.log.write(ctx, Event{Kind: Retrying, Path: at.path, Attempt: attempt, Error: &fault, Until: until.UTC()}); err != nil {
			return result{}, err
		}
		if err := r.meter.addStep(); err != nil {
			return result{}, err
		}
		if err := r.delayRetry(ctx, at, until); err != nil {
			return result{}, err
		}
		attempt, at = attempt+1, r.forRetry(at)
	}
}

// isRefused reports whether nothing was done, because the store of records did not answer, or an execution that is resumed has not ended.
func isRefused(err error) bool {
	return errors.Is(err, store.ErrUnreachable) && tool.AsError(err).Kind == tool.Busy || errors.Is(err, history.ErrRunning)
}

// refusedDelay is the delay after an attempt that was refused.
const refusedDelay = 2 * time.Second

// delayRefused waits until what was refused is tried again, which counts as a step. It is tried until the store answers: a run that was
// accepted does not fail because servers are away for a while.
func (r *run) delayRefused(ctx context.Context) error {
	return errors.Join(r.meter.addStep(), sleepUntil(ctx, time.Now().Add(refusedDelay)))
}

// shouldRetry reports whether a step is retried after a failed attempt.
func (n *node) shouldRetry(attempt int, err error) bool {
	if n.Retry == nil || attempt > n.Retry.Count || errors.Is(err, errReleased) {
		return false
	}
	kind := faultOf(err, "", 0).Kind
	if len(n.Retry.On) > 0 {
		return slices.Contains(n.Retry.On, string(kind))
	}
	return kind == tool.Timeout || kind == tool.Upstream || kind == tool.Limit
}

// retryDelay returns the delay after a failed attempt.
func (n *node) retryDelay(attempt int) time.Duration {
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

// attemptUntilServed is attempt, repeated with what is known of the attempt while the store of records refuses it.
func (r *run) attemptUntilServed(ctx context.Context, f *frame, n *node, at location, attempt int) (result, error) {
	for {
		out, err := r.attempt(ctx, f, n, at, attempt)
		if failed, ok := errors.AsType[*failure](err); !ok || !failed.refused || ctx.Err() != nil {
			return out, err
		}
		if err := r.delayRefused(ctx); err != nil {
			return result{}, err
		}
	}
}

// attempt runs a step once within its timeout, and evaluates its output.
func (r *run) attempt(ctx context.Context, f *frame, n *node, at location, attempt int) (result, error) {
	inner, stop := withTimeout(ctx, n.Timeout, timeoutError(n.Timeout))
	defer stop()
	inner, span := r.stepSpan(inner, n, at, attempt)
	out, err := r.do(inner, f, n, at, attempt)
	span.End(outcomeLabel(out, err))
	if err != nil {
		return result{}, r.newFailure(ctx, inner, at.path, n.Line, err)
	}
	if n.output == nil || out.final {
		return out, nil
	}
	v, err := f.eval(ctx, n.output, map[string]any{"output": out.value})
	if err != nil {
		return result{}, err
	}
	return normalize(v, maxOutput)
}

// normalize returns the result for a value after a round trip through JSON.
func normalize(v any, most int) (result, error) {
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

// logBlock logs the start of an attempt of a step with nested steps.
func (r *run) logBlock(n *node, at location, attempt int) {
	if !leaf(n) && at.history.currentAttempt() != attempt {
		r.log.buffer(Event{Kind: Began, Path: at.path, Attempt: attempt})
	}
}

// do runs the action of the step.
func (r *run) do(ctx context.Context, f *frame, n *node, at location, attempt int) (result, error) {
	if _, nested := n.Do.(*spec.Nested); !nested { // it logs more itself
		r.logBlock(n, at, attempt)
	}
	switch do := n.Do.(type) {
	case *spec.Tool:
		return toolRun{r}.tool(ctx, f, n, do, at, attempt)
	case *spec.Code:
		return codeRun{r}.code(ctx, f, n, do, at, attempt)
	case *spec.Skill:
		return codeRun{r}.skill(ctx, f, n, do, at, attempt)
	case *spec.Plugin:
		return toolRun{r}.plugin(ctx, f, n, do, at, attempt)
	case *spec.Task:
		return taskRun{r}.task(ctx, f, n, do, at, attempt)
	case *spec.Nested:
		return r.runNested(ctx, f, n, do, at, attempt)
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

// recordStart logs the start of an attempt; the event is on disk when it returns. A large input is replaced by its hash.
func (r *run) recordStart(ctx context.Context, at location, attempt int, e Event) error {
	if len(e.Input) > maxInput {
		sum := sha256.Sum256(e.Input)
		e.Input = fmt.Appendf(nil, `{"sha256":%q,"bytes":%d}`, hex.EncodeToString(sum[:]), len(e.Input))
	}
	e.Kind, e.Path, e.Attempt = Began, at.path, attempt
	return r.log.write(ctx, e)
}

// delayRetry waits until a retry may start.
func (r *run) delayRetry(ctx context.Context, at location, until time.Time) error {
	if r.engine.opts.NoRetryDelay {
		return nil
	}
	if time.Until(until) > longDelay {
		return waitRun{r}.sleep(ctx, at, until)
	}
	return sleepUntil(ctx, until)
}
