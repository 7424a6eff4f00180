// Package approvals requests approval of calls from people and applies their answers.
package approvals

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

type (
	// Approval is a request for approval of a call, and its answer if there is one.
	Approval = approval.Approval
	// Answer is the answer of a person.
	Answer = approval.Answer
)

// Options are the dependencies of an [Approver].
type Options struct {
	// Records keeps approvals; nil keeps them in memory.
	Records *store.Store
	// Settings are the settings in force.
	Settings config.Source
	Logger   *slog.Logger
	// Record writes a request or an answer to the audit log before it takes effect.
	Record func(ctx context.Context, a Approval) error
	// Changed is called after a request or an answer took effect; nil does nothing. It must not block.
	Changed func(a Approval)
	// Definition returns the digest of a tool's definition, "" for an unknown one.
	Definition func(id tool.ID) string
	// Closing reports whether the process is shutting down.
	Closing func() bool
}

// Open opens the approvals. Close it.
func Open(opts Options) (*Approver, error) {
	in := opts.Records
	if in == nil {
		in = store.Memory()
	}
	kept, err := in.Bucket("approvals", approval.Limits())
	if err != nil {
		return nil, err
	}
	p := &Approver{opts: opts, waitingCalls: map[string]int{}, Book: approval.NewStore(kept, &approval.Options{
		Expire: func() time.Duration { return opts.Settings.Load().Approval.Expire }, Record: opts.Record, Changed: opts.Changed, Self: in.Self(), Alive: in.Alive,
	}), endFollow: func() {}}
	if in.Shared() {
		p.endFollow = p.Book.Subscribe(opts.Logger, p.watchers.Notify)
	}
	return p, nil
}

// Close cancels the requests to clients that are in flight, and stops following other gateways.
func (p *Approver) Close() {
	p.clients.close()
	p.endFollow()
}

// PendingCount returns the number of pending approvals.
func (p *Approver) PendingCount(ctx context.Context) (n int) {
	all, err := p.Book.List(ctx)
	if err != nil {
		return 0
	}
	for _, a := range all {
		if a.State == approval.Waiting {
			n++
		}
	}
	return n
}

// Approvals returns the pending and recently answered approvals of the caller, or of all principals for an operator,
// the newest first. Errors are *tool.Error.
func (p *Approver) Approvals(ctx context.Context) ([]Approval, error) {
	all, err := p.Book.List(ctx)
	if err != nil {
		return nil, toolcall.Unreadable(ctx, p.opts.Logger, err)
	}
	if tool.Operator(ctx) == "" {
		who := tool.Principal(ctx)
		all = slices.DeleteFunc(all, func(a Approval) bool { return a.Principal != who })
	}
	return all, nil
}

// WatchApprovals calls f after each request and each answer, until stop is called. f must not block.
func (p *Approver) WatchApprovals(f func()) (stop func()) { return p.watchers.Add(f) }

// Answer answers an approval, once. Callers other than operators get a not-found error. By defaults to the operator's name.
// Errors are *tool.Error.
func (p *Approver) Answer(ctx context.Context, id string, answer Answer) (Approval, error) {
	who := tool.Operator(ctx)
	if who == "" {
		return Approval{}, p.approvalError(ctx, id, Approval{}, approval.ErrNotFound)
	}
	if answer.By == "" {
		answer.By = who
	}
	a, err := p.Book.Answer(ctx, id, answer)
	if err != nil {
		return Approval{}, p.approvalError(ctx, id, a, err)
	}
	p.watchers.Notify()
	return a, nil
}

// approvalError returns the error for a rejected request or answer.
func (p *Approver) approvalError(ctx context.Context, id string, a Approval, err error) error {
	shown := sanitize.Line(id, 60)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return &tool.Error{Kind: tool.NotFound, Message: "there is no approval " + shown, Hint: "`sallyport approvals` lists those that wait"}
	case errors.Is(err, approval.ErrAnswered):
		message := "approval " + shown + " is no longer pending"
		if a.State != "" {
			message += ": it is " + string(a.State)
		}
		return &tool.Error{Kind: tool.Invalid, Message: message}
	case errors.Is(err, approval.ErrExpired):
		return &tool.Error{Kind: tool.Invalid, Message: "approval " + shown + " has expired", Hint: "run the program again to request it again"}
	case errors.Is(err, approval.ErrInvalid) && a.Single:
		return &tool.Error{Kind: tool.Invalid, Message: "approval " + shown + " is a question of a workflow", Hint: "it is answered for once only"}
	case errors.Is(err, approval.ErrInvalid):
		return &tool.Error{Kind: tool.Invalid, Message: "invalid answer to approval " + shown, Hint: "the scope is once, execution (of a program's call) or session"}
	case errors.Is(err, approval.ErrMany):
		return &tool.Error{Kind: tool.Limit, Message: "too many calls wait for approval already", Hint: "have those answered first"}
	}
	if down := toolcall.Unavailable(err); down != nil {
		return down
	}
	p.opts.Logger.ErrorContext(ctx, "approval is not kept", "approval", shown, "error", err)
	return &tool.Error{Kind: tool.Internal, Message: "the approval cannot be kept", Hint: "the operator's log says why", Err: err}
}
