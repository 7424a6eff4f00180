// Package toolcall has the handlers and middlewares of tool calls, and the state of a call and its execution.
package toolcall

import (
	"context"
	"slices"

	"sallyport/internal/tool"
)

// Handler makes one call. It is safe for concurrent use.
type Handler func(ctx context.Context, call tool.Call) (tool.Result, error)

// Middleware wraps a handler: it may inspect, change or refuse the call, and inspect or change its result.
type Middleware func(next Handler) Handler

// Chain wraps a handler in middlewares. The first one sees a call first.
func Chain(end Handler, around ...Middleware) Handler {
	for _, middleware := range slices.Backward(around) {
		end = middleware(end)
	}
	return end
}
