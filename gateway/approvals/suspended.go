package approvals

import (
	"context"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/journal"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// FinishSuspended adds the pending approvals to a suspended execution. If the execution ended otherwise, it withdraws them.
func (p *Approver) FinishSuspended(ctx context.Context, e *execution.Result, r *toolcall.Execution) {
	if !r.Suspension.Suspended() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	all, err := p.Book.List(ctx)
	if err != nil {
		p.opts.Logger.ErrorContext(ctx, "approvals cannot be read", "execution", e.ID, "error", err)
	}
	for _, a := range all {
		switch {
		case a.Execution != e.ID || a.Principal != tool.Principal(ctx) || a.State != approval.Waiting:
		case e.Status == sandbox.Canceled:
			e.Approvals = append(e.Approvals, a)
		default:
			if err := p.Book.Withdraw(ctx, a.ID); err != nil {
				p.opts.Logger.WarnContext(ctx, "approval is not withdrawn", "approval", a.ID, "error", err)
			}
		}
	}
	if e.Status == sandbox.Canceled {
		e.Status = execution.Held
	}
	p.watchers.Notify()
}

// applyDoubtAnswer applies the answer about a call that may already have been done to its verdict.
func applyDoubtAnswer(v toolcall.Verdict, a Approval) toolcall.Verdict {
	switch a.State {
	case approval.Done:
		v.Decision, v.Result = journal.Done, tool.Result{Structured: a.Result}
		if a.Result == nil {
			v.Result = tool.Result{Content: []tool.Content{{Type: "text", Text: "done: no result was given"}}}
		}
		v.Action = policy.Allow
	case approval.Denied:
		v.Decision, v.Action = journal.Skipped, policy.Deny
		v.Message = refusal(a) + ": it may have been done, and is not made again"
	default:
		v.Action = policy.Allow
	}
	return v
}

// doubtOrigins returns the earlier calls that a call may repeat. An answer applies to these calls only.
func doubtOrigins(ctx context.Context) (origins []string) {
	if made := toolcall.AttemptOf(ctx); made != nil && made.Doubt != nil {
		return made.Doubt.Origins()
	}
	return nil
}
