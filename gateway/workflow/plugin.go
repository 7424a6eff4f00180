package workflow

import (
	"context"
	"encoding/json"
	"strings"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/tool"
)

// Plugins calls steps of plugins.
type Plugins interface {
	// Step calls the step Tool.Name of the plugin Tool.Upstream, and returns its value. Errors are *tool.Error.
	Step(ctx context.Context, c tool.Call) (json.RawMessage, error)
}

// plugin calls a step of a plugin.
func (r toolRun) plugin(ctx context.Context, f *frame, n *node, do *spec.Plugin, at location, attempt int) (result, error) {
	args, err := r.arguments(ctx, f, n)
	if err != nil {
		return result{}, err
	}
	if out, done, err := r.callStub(ctx, n, at, attempt, args); done || err != nil {
		return out, err
	}
	if out, done, err := r.resolveInterrupted(ctx, n, at, attempt, false); done || err != nil {
		return out, err
	}
	name, step, _ := strings.Cut(do.Name.Text, ".")
	if r.engine.opts.Plugins == nil {
		return result{}, &tool.Error{Kind: tool.NotFound, Message: "there are no plugins here"}
	}
	call := tool.Call{Tool: tool.ID{Upstream: name, Name: step}, Args: args, Execution: r.id, Peer: r.peer}
	return r.callApproved(ctx, at, func() (result, error) { return r.callPlugin(ctx, at, attempt, call) })
}

// callPlugin makes one call of a step, which is logged before.
func (r toolRun) callPlugin(ctx context.Context, at location, attempt int, call tool.Call) (result, error) {
	leave, err := r.enter(ctx)
	if err != nil {
		return result{}, err
	}
	defer leave()
	if err := r.recordStart(ctx, at, attempt, Event{Input: call.Args}); err != nil {
		return result{}, err
	}
	output, err := r.engine.opts.Plugins.Step(toolcall.WithRun(atStep(ctx, r.id, at.path), r.id), call)
	if err != nil {
		return result{}, err
	}
	return normalize(output, maxOutput)
}
