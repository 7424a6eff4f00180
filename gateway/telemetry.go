package gateway

import (
	"context"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// The names of attributes are those of OpenTelemetry's conventions for MCP and generative AI, where these have one.
const (
	attrMethod    = "mcp.method.name"
	attrTool      = "gen_ai.tool.name"
	attrOperation = "gen_ai.operation.name"
	attrUpstream  = "sallyport.upstream"
)

// measure records the metrics and the span of a whole call: policy, approval, waiting and upstream. has reports whether an upstream exists.
func measure(t *telemetry.Telemetry, has func(upstream string) bool) toolcall.Middleware {
	return func(next toolcall.Handler) toolcall.Handler {
		if t == nil {
			return next
		}
		return func(ctx context.Context, c tool.Call) (tool.Result, error) {
			begun := time.Now()
			ctx, span := t.Start(ctx, telemetry.Internal, "execute_tool", c.Tool.String())
			span.Set(attrOperation, "execute_tool")
			span.Set(attrTool, c.Tool.String())
			span.Set(telemetry.ExecutionID, c.Execution)
			result, err := next(ctx, c)
			went := toolcall.Outcome(result, err)
			if made := toolcall.AttemptOf(ctx); made != nil && made.Replayed {
				span.Set("sallyport.replayed", "true")
			}
			span.SetInt("sallyport.result.bytes", toolcall.TextSize(result))
			span.End(went)
			label := c.Tool.Upstream
			if label != toolcall.GatewayID && !has(label) { // metrics have no labels that programs make up
				label = "_unknown"
			}
			t.RecordCall(ctx, label, went, time.Since(begun))
			return result, err
		}
	}
}

// trace records the span of a request to an upstream, and passes it the span's context.
func trace(t *telemetry.Telemetry) toolcall.Middleware {
	return func(next toolcall.Handler) toolcall.Handler {
		if t == nil {
			return next
		}
		return func(ctx context.Context, c tool.Call) (tool.Result, error) {
			method, target := c.Tool.Method(), ""
			if method == "tools/call" {
				target = c.Tool.Name
			}
			ctx, span := t.Start(ctx, telemetry.Client, method, target)
			span.Set(attrMethod, method)
			span.Set(attrTool, target)
			span.Set(attrUpstream, c.Tool.Upstream)
			result, err := next(ctx, c)
			span.End(toolcall.Outcome(result, err))
			return result, err
		}
	}
}

// gauges returns a function that reads the gauges of a gateway's metrics.
func gauges(g *Gateway) func(ctx context.Context) telemetry.State {
	return func(ctx context.Context) telemetry.State {
		s := telemetry.State{Upstreams: map[string]int{}, Tools: map[string]int{}, Sandboxes: g.Sandboxes.PoolSizes()}
		s.Running, s.Queued = g.Executor.Load()
		s.Places = g.Executor.Slots()
		for _, up := range g.Catalog.Upstreams() {
			s.Upstreams[string(up.State.Status)]++
			s.Tools[up.ID] = up.State.Tools
		}
		for _, w := range g.Sandboxes.Workers() {
			s.Workers = append(s.Workers, telemetry.Worker(w))
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		s.Approvals = g.Approver.PendingCount(ctx)
		return s
	}
}
