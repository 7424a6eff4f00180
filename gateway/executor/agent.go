package executor

import (
	"context"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// agent makes a program's calls on behalf of its caller, who is not in the
// context of a sandbox.
type agent struct {
	executor *Executor
	*active
}

// Call implements [bridge.Caller].
func (a agent) Call(ctx context.Context, c tool.Call) (result tool.Result, err error) {
	defer toolcall.Recover(ctx, a.executor.opts.Logger, c, &result, &err)
	leave, err := a.Suspension.Begin(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	c.Peer = a.peerFor(ctx, c)
	made := a.executor.opts.Replay.Attempt(c)
	end := a.Calls.Begin(made)
	ctx = a.callContext(ctx, made)
	if clock := tool.ClockOf(ctx); clock != nil {
		ctx = tool.WithClock(ctx, liveClock{clock, a.active})
	}
	result, err = a.answer(ctx, c)
	a.Calls.Sample(result)
	a.Calls.Failed(c.Tool, result, err)
	a.Calls.Keep(c, result, err)
	a.keepInterface(c, result, err)
	end(toolcall.Outcome(result, err), toolcall.TextSize(result))
	return result, err
}

// keepInterface keeps the result of a tool with a user interface, which the program may show.
func (a agent) keepInterface(c tool.Call, result tool.Result, err error) {
	if err != nil {
		return
	}
	if e, ok := a.executor.opts.Catalog.Lookup(c.Tool); ok {
		a.shown.keep(c.Tool, e.Raw, result)
	}
}

// callContext returns a context for a call, on behalf of the program's caller.
func (a agent) callContext(ctx context.Context, made *toolcall.Attempt) context.Context {
	s := toolcall.ScopeOf(ctx)
	s.Execution, s.Attempt = a.Execution, made
	if a.Candidate != nil {
		s.Candidate = a.Candidate
	}
	ctx = tool.WithClient(tool.WithSession(tool.WithPrincipal(ctx, a.Principal), a.Session), a.Client)
	ctx = tool.WithEndpoint(ctx, a.Endpoint)
	if a.Remote {
		ctx = tool.WithRemote(ctx)
	}
	return s.In(a.Place.In(ctx))
}

// answer returns the result of a call.
func (a agent) answer(ctx context.Context, c tool.Call) (tool.Result, error) {
	if a.Stub != nil {
		return a.Stub(ctx, c)
	}
	return a.executor.opts.Call(ctx, c)
}
