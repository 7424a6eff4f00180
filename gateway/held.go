package gateway

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Held is the status of an execution that was stopped since a call of it waits for approval. What it did
// is in its journal: the execution that resumes it does not do that again.
const Held sandbox.Status = "held"

// settleHeld says of an execution that was stopped for it what it waits for. One that ended otherwise waits for nothing.
func (g *Gateway) settleHeld(ctx context.Context, e *Execution, r *toolcall.Execution) {
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
		e.Status = Held
	}
	g.approvals.watchers.Notify()
}

// heldText tells what a person has to do, and then the model.
func (e Execution) heldText() string {
	var b strings.Builder
	b.WriteString("held: it needs approval, and nobody could be asked in time.")
	if len(e.Approvals) == 0 {
		b.WriteString(" It is answered by now.")
	}
	for _, a := range e.Approvals[:min(len(e.Approvals), maxSaid)] {
		b.WriteString("\n" + a.Tool)
		if why := cmp.Or(a.Reason, a.Rule); why != "" {
			b.WriteString(" (" + plain.Line(why, 150) + ")")
		}
		b.WriteString(": sallyport approvals approve " + a.ID)
		if a.Doubt {
			b.WriteString(" (make it), done (it was done), or deny (leave it)")
		}
	}
	if !e.journaled {
		b.WriteString("\nTell the user, and run it again when somebody can answer: no journal of it is kept, so calls that were made are made again.")
		return b.String()
	}
	fmt.Fprintf(&b, "\nTell the user. Once approved, go on with execute_code(code=\"\", resume=%q): calls that were made are not made again.", e.ID)
	return b.String()
}
