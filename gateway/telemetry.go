package gateway

import (
	"context"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// The names of attributes are those of OpenTelemetry's conventions for MCP and generative AI, where these have one.
const (
	attrMethod    = "mcp.method.name"
	attrTool      = "gen_ai.tool.name"
	attrOperation = "gen_ai.operation.name"
	attrUpstream  = "sallyport.upstream"
	attrExecution = "sallyport.execution.id"
)

// Telemetry is what the gateway measures with, nil for nothing.
func (g *Gateway) Telemetry() *telemetry.Telemetry { return g.opts.Telemetry }

// measured is around all that becomes of a call: policy, approval, waiting, the upstream.
func (g *Gateway) measured(next toolcall.Handler) toolcall.Handler {
	t := g.opts.Telemetry
	if t == nil {
		return next
	}
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		begun := time.Now()
		ctx, span := t.Start(ctx, telemetry.Inside, "execute_tool", c.Tool.String())
		span.Set(attrOperation, "execute_tool")
		span.Set(attrTool, c.Tool.String())
		span.Set(attrExecution, c.Execution)
		result, err := next(ctx, c)
		went := toolcall.Outcome(result, err)
		if made := toolcall.AttemptOf(ctx); made != nil && made.Replayed {
			span.Set("sallyport.replayed", "true")
		}
		span.SetInt("sallyport.result.bytes", toolcall.TextSize(result))
		span.End(went)
		t.Called(ctx, g.upstreamLabel(c.Tool.Upstream), went, time.Since(begun))
		return result, err
	}
}

// upstreamLabel is what an upstream is called in metrics: whatever programs ask for, only those that there are.
func (g *Gateway) upstreamLabel(id string) string {
	if _, err := g.catalog.member(id); err != nil && id != ownID {
		return "_unknown"
	}
	return id
}

// sent is around what goes to an upstream: that is told the span.
func (g *Gateway) sent(next toolcall.Handler) toolcall.Handler {
	t := g.opts.Telemetry
	if t == nil {
		return next
	}
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		method, target := c.Tool.Method(), ""
		if method == "tools/call" {
			target = c.Tool.Name
		}
		ctx, span := t.Start(ctx, telemetry.Asking, method, target)
		span.Set(attrMethod, method)
		span.Set(attrTool, target)
		span.Set(attrUpstream, c.Tool.Upstream)
		result, err := next(ctx, c)
		span.End(toolcall.Outcome(result, err))
		return result, err
	}
}

// tracked runs a job within a span, and counts it.
func (g *Gateway) tracked(ctx context.Context, job sandbox.Job, program execution.Program, before *resumed) (execution.Result, error) {
	t, language := g.opts.Telemetry, execution.LanguageName(job.Interpreter)
	begun := time.Now()
	ctx, span := t.Start(ctx, telemetry.Inside, "execute_code", language)
	span.Set(attrExecution, job.ID)
	span.Set("sallyport.language", language)
	e, err := g.execute(ctx, job, program, before)
	if err != nil {
		kind := tool.AsError(err).Kind
		span.End(string(kind))
		if kind == tool.Busy {
			t.Refused(ctx, "busy")
		}
		return e, err
	}
	span.SetInt("sallyport.queued.ms", e.Queued.Milliseconds())
	span.SetInt("sallyport.calls", int64(e.Calls))
	span.SetInt("sallyport.stdout.bytes", int64(len(e.Stdout.Text))+e.Stdout.Cut)
	span.End(string(e.Status))
	t.Executed(ctx, telemetry.Execution{Language: language, Status: string(e.Status), Duration: time.Since(begun), Queued: e.Queued})
	return e, nil
}

// state is how things stand, for whoever reads the metrics.
func (g *Gateway) state(ctx context.Context) telemetry.State {
	s := telemetry.State{Upstreams: map[string]int{}, Tools: map[string]int{}, Sandboxes: g.runner.pooled()}
	s.Running, s.Queued = g.admission.load()
	s.Places = g.admission.parallel
	for _, up := range g.Upstreams() {
		s.Upstreams[string(up.State.Status)]++
		s.Tools[up.ID] = up.State.Tools
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.Approvals = g.Approver.Waiting(ctx)
	return s
}

// spent counts the tokens of an execution. It does so apart from it, when they have been counted.
func (g *Gateway) spent(answered, read int) {
	g.opts.Telemetry.Tokens(context.Background(), "execute", answered, read)
}
