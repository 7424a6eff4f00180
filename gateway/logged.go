package gateway

import (
	"context"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// logged writes a line per call: which tool, how it went, how long, and nothing of what was said.
func (g *Gateway) logged(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		start := time.Now()
		result, err := next(ctx, c)
		g.log.DebugContext(ctx, "tool call", "tool", c.Tool.String(), "execution", c.Execution, "outcome", toolcall.Outcome(result, err), "duration", time.Since(start))
		return result, err
	}
}
