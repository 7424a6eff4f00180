package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/gateway/approvals"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/approval"
	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// What to do with a step that was running when its gateway was killed.
const (
	interruptedRetry = "retry"
	interruptedFail  = "fail"
	interruptedAsk   = "ask"
)

// toolRun calls tools for steps.
type toolRun struct{ *run }

// tool calls a tool. A call that needs approval waits for it and is then repeated.
func (r toolRun) tool(ctx context.Context, f *frame, n *node, do *spec.Tool, at location, attempt int) (result, error) {
	id, err := tool.ParseID(do.Name.Text)
	if err != nil {
		return result{}, err
	}
	args, err := r.arguments(ctx, f, n)
	if err != nil {
		return result{}, err
	}
	if out, done, err := r.callStub(ctx, n, at, attempt, args); done || err != nil {
		return out, err
	}
	if out, done, err := r.resolveInterrupted(ctx, n, at, attempt, r.engine.safeToRepeat(id)); done || err != nil {
		return out, err
	}
	call := tool.Call{Tool: id, Args: args, Execution: r.id, Peer: r.peer}
	return r.callApproved(ctx, at, func() (result, error) { return r.callTool(ctx, at, attempt, call) })
}

// callApproved makes a call, and repeats it after approval if it needs one.
func (r toolRun) callApproved(ctx context.Context, at location, call func() (result, error)) (result, error) {
	if pending := at.history.pendingWait(); pending != nil && pending.Approval != "" && pending.Why == "" {
		if err := waitRun(r).waitDecision(ctx, at, *pending); err != nil {
			return result{}, err
		}
	}
	for {
		out, err := call()
		waits, ok := errors.AsType[*approvals.PendingError](err)
		if !ok {
			return out, err
		}
		if err := waitRun(r).waitDecision(ctx, at, Pending{Step: at.path, For: forApproval, Approval: waits.Approval, Until: waits.Until}); err != nil {
			return result{}, err
		}
	}
}

// callTool makes one call, which is logged before.
func (r toolRun) callTool(ctx context.Context, at location, attempt int, call tool.Call) (result, error) {
	leave, err := r.enter(ctx)
	if err != nil {
		return result{}, err
	}
	defer leave()
	if err := r.recordStart(ctx, at, attempt, Event{Input: call.Args, Tool: call.Tool.String()}); err != nil {
		return result{}, err
	}
	answer, err := r.engine.caller.Call(toolcall.WithRun(atStep(ctx, r.id, at.path), r.id), call)
	return toolResult(call.Tool, answer, err)
}

// toolResult converts the result of a tool to the result of its step.
func toolResult(id tool.ID, answer tool.Result, err error) (result, error) {
	if err != nil {
		return result{}, err
	}
	if answer.IsError {
		text := answer.Text()
		if text == "" {
			text = "no reason given"
		}
		return result{}, &tool.Error{Kind: tool.Failed, Message: id.String() + " failed: " + text}
	}
	return normalize(answer.Value().Plain(), maxOutput)
}

// arguments evaluates "with" to an object.
func (r toolRun) arguments(ctx context.Context, f *frame, n *node) (json.RawMessage, error) {
	v, err := f.eval(ctx, n.with, nil)
	if err != nil {
		return nil, err
	}
	if v == nil {
		v = map[string]any{}
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "with is " + expr.Describe(v) + ", not an object"}
	}
	return encode(v, maxOutput)
}

// callStub asks the stub of a test for the result of a step, see [Stub].
func (r toolRun) callStub(ctx context.Context, n *node, at location, attempt int, input json.RawMessage) (result, bool, error) {
	ask := r.engine.opts.Stub
	if ask == nil {
		return result{}, false, nil
	}
	output, done, err := ask(atStep(ctx, r.id, at.path), at.path, n.Step, input)
	if !done {
		return result{}, false, nil
	}
	begin := Event{Input: input}
	if do, ok := n.Do.(*spec.Tool); ok {
		begin.Tool = do.Name.Text
	}
	if failed := r.recordStart(ctx, at, attempt, begin); failed != nil {
		return result{}, true, failed
	}
	if err != nil {
		return result{}, true, err
	}
	value, err := decode(output)
	return result{status: outcomeOK, value: value, raw: output, final: true}, true, err
}

// resolveInterrupted decides by the step's rule about a step that may already be done. done is false if the step must run, true
// if a person reports it as done, with this result.
func (r toolRun) resolveInterrupted(ctx context.Context, n *node, at location, attempt int, harmless bool) (out result, done bool, err error) {
	if !at.history.interrupted(attempt) {
		return result{}, false, nil
	}
	rule := n.Interrupted
	switch {
	case rule == "" && harmless:
		rule = interruptedRetry
	case rule == "", at.history.uncertain && rule == interruptedFail: // the run was resumed since
		rule = interruptedAsk
	}
	switch rule {
	case interruptedRetry:
		return result{}, false, nil
	case interruptedAsk:
		return r.askAgain(ctx, at)
	}
	return result{}, false, interruptedError("its rule forbids a repeat")
}

// resolveByRule is resolveInterrupted for a step that can be resumed: only a rule of the definition keeps it from that.
func (r toolRun) resolveByRule(ctx context.Context, n *node, at location, attempt int) (out result, done bool, err error) {
	if at.history == nil || at.history.attempt != attempt || n.Interrupted != interruptedFail && n.Interrupted != interruptedAsk {
		return result{}, false, nil
	}
	return r.resolveInterrupted(ctx, n, at, attempt, true)
}

func interruptedError(why string) error {
	return &tool.Error{Kind: tool.Canceled, Message: "the step was interrupted: it may have been done, and " + why,
		Hint: "check whether it was done; `interrupted: retry` in the definition repeats it"}
}

// interrupted reports whether an attempt was started and it is unknown whether it was completed.
func (p *stepHistory) interrupted(attempt int) bool {
	return p != nil && max(p.attempt, 1) == attempt && (p.uncertain || p.last == Began || p.last == Waits && p.pending != nil && p.pending.Why == whyInterrupted)
}

// askAgain asks a person whether to repeat an interrupted step. Each start and each resume of the step is a new question.
func (r toolRun) askAgain(ctx context.Context, at location) (out result, done bool, err error) {
	message := fmt.Sprintf("Step %s of workflow %s was interrupted. It may have been done already. Repeat it?", at.path, r.started.Workflow)
	a, err := waitRun(r).inquire(ctx, approvals.Question{Step: at.path + " (interrupted)", Attempt: at.history.starts, Message: message, Doubt: true})
	if isRefused(err) {
		return result{}, false, err
	}
	if err != nil {
		return result{}, false, errors.Join(interruptedError("nobody can be asked"), err)
	}
	a, err = waitRun(r).waitAnswer(ctx, at, Pending{Step: at.path, For: forApproval, Approval: a.ID, Until: a.Expires, Why: whyInterrupted})
	if f := tool.AsError(err); err != nil && (f.Kind == tool.Denied || f.Kind == tool.Timeout) && ctx.Err() == nil {
		return result{}, false, interruptedError("it must not be repeated")
	}
	if err != nil || a.State != approval.Done {
		return result{}, false, err
	}
	if a.Result == nil {
		return result{status: outcomeOK, raw: json.RawMessage("null")}, true, nil
	}
	v, err := decode(a.Result)
	if err != nil {
		return result{}, false, err
	}
	out, err = normalize(v, maxOutput)
	return out, true, err
}

// safeToRepeat reports whether a tool declares itself read-only or idempotent.
func (e *Engine) safeToRepeat(id tool.ID) bool {
	if e.opts.Catalog == nil {
		return false
	}
	known, ok := e.opts.Catalog.Tool(id)
	a := known.Annotations
	return ok && (a.ReadOnly != nil && *a.ReadOnly || a.Idempotent != nil && *a.Idempotent)
}
