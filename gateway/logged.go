package gateway

import (
	"context"
	"time"

	"sallyport/gateway/call"
	"sallyport/internal/tool"
)

// logged writes a line per call: which tool, how it went, how long, and nothing of what was said.
func (g *Gateway) logged(next call.Handler) call.Handler {
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
