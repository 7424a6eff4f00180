package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/plain"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

type (
	// Approval is what people are asked about a call, and their answer once there is one.
	Approval = approval.Approval
	// Answer is what a person says.
	Answer = approval.Answer
)

// openApprovals keeps them in a store; in memory only, for nil.
func (g *Gateway) openApprovals(in *store.Store) error {
	if in == nil {
		in = store.Memory()
	}
	kept, err := in.Bucket("approvals", approval.Limits())
	if err != nil {
		return err
	}
	g.approvals = approvals{asking: map[string]int{}, book: approval.NewBook(kept, &approval.Options{
		Expire: func() time.Duration { return g.cfg.Load().Approval.Expire }, Record: g.recordApproval,
	})}
	return nil
}

// recordApproval puts on record what a person is asked and answers, before it counts; what cannot be kept does not.
func (g *Gateway) recordApproval(ctx context.Context, a Approval) error {
	err := g.auditApproval(ctx, a)
	if err == nil {
		g.opts.Telemetry.Asked(ctx, string(a.State))
	}
	return err
}

// Approvals returns what whoever asks has waiting for a person, and what was answered lately; an operator sees that
// of all principals. The newest come first. Errors are *tool.Error.
func (g *Gateway) Approvals(ctx context.Context) ([]Approval, error) {
	all, err := g.approvals.book.List(ctx)
	if err != nil {
		return nil, toolcall.Unreadable(ctx, g.log, err)
	}
	if tool.Operator(ctx) == "" {
		who := tool.Principal(ctx)
		all = slices.DeleteFunc(all, func(a Approval) bool { return a.Principal != who })
	}
	return all, nil
}

// WatchApprovals has f called after each question and each answer, until stop is called. f must not block.
func (g *Gateway) WatchApprovals(f func()) (stop func()) { return g.approvals.watchers.Add(f) }

// Answer answers a question for an operator, once; all others are told that there is none. By is the operator's name where the answer names nobody.
// Errors are *tool.Error.
func (g *Gateway) Answer(ctx context.Context, id string, answer Answer) (Approval, error) {
	who := tool.Operator(ctx)
	if who == "" {
		return Approval{}, g.approvalError(ctx, id, Approval{}, approval.ErrNotFound)
	}
	if answer.By == "" {
		answer.By = who
	}
	a, err := g.approvals.book.Answer(ctx, id, answer)
	if err != nil {
		return Approval{}, g.approvalError(ctx, id, a, err)
	}
	g.approvals.watchers.Notify()
	return a, nil
}

// approvalError says what is wrong with an answer.
func (g *Gateway) approvalError(ctx context.Context, id string, a Approval, err error) error {
	shown := plain.Line(id, 60)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return &tool.Error{Kind: tool.NotFound, Message: "there is no approval " + shown, Hint: "`sallyport approvals` lists those that wait"}
	case errors.Is(err, approval.ErrAnswered):
		message := "approval " + shown + " does not wait for an answer any more"
		if a.State != "" {
			message += ": it is " + string(a.State)
		}
		return &tool.Error{Kind: tool.Invalid, Message: message}
	case errors.Is(err, approval.ErrExpired):
		return &tool.Error{Kind: tool.Invalid, Message: "approval " + shown + " has expired", Hint: "the program can be run again, and asks again then"}
	case errors.Is(err, approval.ErrInvalid) && a.Single:
		return &tool.Error{Kind: tool.Invalid, Message: "approval " + shown + " is a question of a workflow", Hint: "it is answered for once only"}
	case errors.Is(err, approval.ErrInvalid):
		return &tool.Error{Kind: tool.Invalid, Message: "approval " + shown + " cannot be answered so", Hint: "the scope is once, execution (of a program's call) or session"}
	case errors.Is(err, approval.ErrMany):
		return &tool.Error{Kind: tool.Limit, Message: "too many calls wait for approval already", Hint: "have those answered first"}
	}
	g.log.ErrorContext(ctx, "approval is not kept", "approval", shown, "error", err)
	return &tool.Error{Kind: tool.Internal, Message: "the approval cannot be kept", Hint: "the operator's log says why", Err: err}
}
