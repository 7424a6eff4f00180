package workflow

import (
	"context"
	"errors"

	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// runInSpan executes a run within a span. The span of a run that is continued after a restart
// starts a new trace, since the request that started the run has ended.
func (r *run) runInSpan(ctx context.Context, l *live) error {
	ctx, span := r.engine.opts.Telemetry.Start(l.place.In(ctx), telemetry.Internal, "invoke_workflow", l.workflow)
	span.Set("gen_ai.operation.name", "invoke_workflow")
	span.Set("gen_ai.workflow.name", l.workflow)
	span.Set("sallyport.run.id", r.id)
	err := r.finish(ctx, l)
	run, _, _ := r.state.snapshot()
	switch {
	case errors.Is(err, errReleased):
		span.End("gone")
	case err != nil:
		span.End(string(tool.Internal))
	default:
		span.End(string(run.Status))
	}
	return err
}

// stepSpan starts the span of one attempt of a step.
func (r *run) stepSpan(ctx context.Context, n *node, at location, attempt int) (context.Context, *telemetry.Span) {
	ctx, span := r.engine.opts.Telemetry.Start(ctx, telemetry.Internal, "step", n.ID.Text)
	span.Set("sallyport.step.path", at.path)
	span.SetInt("sallyport.step.attempt", int64(attempt))
	return ctx, span
}

// outcomeLabel returns the outcome of an attempt for its span: the error kind or the status.
func outcomeLabel(out result, err error) string {
	if err != nil {
		return string(faultOf(err, "", 0).Kind)
	}
	return out.status
}
