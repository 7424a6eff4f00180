package workflow

import (
	"context"
	"encoding/json"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/tool"
)

// Plugins calls steps of plugins.
type Plugins interface {
	// Step calls a step with arguments by name, in a JSON object. Errors are *tool.Error.
	Step(ctx context.Context, plugin, step string, args json.RawMessage) (json.RawMessage, error)
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
	leave, err := r.enter(ctx)
	if err != nil {
		return result{}, err
	}
	defer leave()
	if err := r.recordStart(ctx, at, attempt, Event{Input: args}); err != nil {
		return result{}, err
	}
	output, err := r.engine.opts.Plugins.Step(atStep(ctx, r.id, at.path), name, step, args)
	if err != nil {
		return result{}, err
	}
	return normalize(output, maxOutput)
}
