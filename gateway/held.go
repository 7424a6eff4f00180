package gateway

import (
	"context"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// settleHeld says of an execution that was stopped for it what it waits for. One that ended otherwise waits for nothing.
func (g *Gateway) settleHeld(ctx context.Context, e *execution.Result, r *toolcall.Execution) {
	if !r.Suspension.Suspended() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	all, err := g.approvals.book.List(ctx)
	if err != nil {
		g.log.ErrorContext(ctx, "approvals cannot be read", "execution", e.ID, "error", err)
	}
	for _, a := range all {
		switch {
		case a.Execution != e.ID || a.Principal != tool.Principal(ctx) || a.State != approval.Waiting:
		case e.Status == sandbox.Canceled:
			e.Approvals = append(e.Approvals, a)
		default:
			if err := g.approvals.book.Withdraw(ctx, a.ID); err != nil {
				g.log.WarnContext(ctx, "approval is not withdrawn", "approval", a.ID, "error", err)
			}
		}
	}
	if e.Status == sandbox.Canceled {
		e.Status = execution.Held
	}
	g.approvals.watchers.Notify()
}
