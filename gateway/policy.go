package gateway

import (
	"context"

	"sallyport/internal/tool"
)

// judge says what the rules of the settings say of a call.
func (g *Gateway) judge(context.Context, tool.Call) verdict { return verdict{action: allow} }

// taint notes what a call may have brought in, before anybody gets its result.
func (g *Gateway) taint(context.Context, tool.Call) {}
