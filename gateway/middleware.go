package gateway

import (
	"context"
	"slices"
	"time"

	"sallyport/internal/tool"
)

// Handler makes one call.
type Handler func(ctx context.Context, call tool.Call) (tool.Result, error)

// Middleware puts something around a handler: it may look at the call, change
// it, refuse it, and look at what came back.
type Middleware func(next Handler) Handler

// chain puts the middlewares around the handler; the first one sees a call first.
func chain(end Handler, around ...Middleware) Handler {
	for _, middleware := range slices.Backward(around) {
		end = middleware(end)
	}
	return end
}

// logged writes a line per call: which tool, how it went, how long, and nothing of what was said.
func (g *Gateway) logged(next Handler) Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		start := time.Now()
		result, err := next(ctx, call)
		g.log.DebugContext(ctx, "tool call", "tool", call.Tool.String(), "execution", call.Execution, "outcome", outcome(result, err), "duration", time.Since(start))
		return result, err
	}
}

// outcome says in a word how a call went: "ok", or the kind of the error.
func outcome(result tool.Result, err error) string {
	switch {
	case err != nil:
		return string(tool.AsError(err).Kind)
	case result.IsError:
		return string(tool.Failed)
	}
	return "ok"
}
