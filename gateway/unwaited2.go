package gateway

import (
	"context"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// Closing reports whether Close has been called.
func (g *Gateway) Closing() bool { return g.runner.closing() || g.catalog.over() }

// ofRun has a call that a run makes itself say so, and what the upstream asks say whose question it is.
func ofRun(ctx context.Context, c tool.Call) tool.Call {
	by := toolcall.ScopeOf(ctx).Run
	if by == "" || toolcall.ExecutionOf(ctx) != nil {
		return c
	}
	if c.Execution == "" {
		c.Execution = by
	}
	if c.Peer != nil {
		c.Peer = namedPeer{c.Peer, c.Tool.Upstream}
	}
	return c
}
