package gateway

import (
	"context"
	"log/slog"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// logCalls logs one line per call: tool, outcome and duration, but no arguments or results.
func logCalls(log *slog.Logger) toolcall.Middleware {
	return func(next toolcall.Handler) toolcall.Handler {
		return func(ctx context.Context, c tool.Call) (tool.Result, error) {
			start := time.Now()
			result, err := next(ctx, c)
			log.DebugContext(ctx, "tool call", "tool", c.Tool.String(), "execution", c.Execution, "outcome", toolcall.Outcome(result, err), "duration", time.Since(start))
			return result, err
		}
	}
}
