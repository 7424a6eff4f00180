package gateway

import (
	"context"
	"time"

	"sallyport/internal/tool"
)

// auditCall keeps what was decided about a call before it is made; what cannot be kept is not done.
func (g *Gateway) auditCall(context.Context, tool.Call, verdict) error { return nil }

// auditResult keeps how a call went.
func (g *Gateway) auditResult(context.Context, tool.Call, tool.Result, error, time.Duration) {}
