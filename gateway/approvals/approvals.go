// Package approvals asks people about calls, and has what they answer count.
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
	// Approval is what people are asked about a call, and their answer once there is one.
	Approval = approval.Approval
	// Answer is what a person says.
	Answer = approval.Answer
)

// Options say where approvals are kept and what is asked.
type Options struct {
	// Records keeps approvals; nil keeps them in memory.
	Records *store.Store
	// Settings are the settings in force.
	Settings config.Source
	Logger   *slog.Logger
	// Record puts a question or an answer on record before it counts.
	Record func(ctx context.Context, a Approval) error
	// Definition returns the digest of a tool's definition, "" for one that is not known.
	Definition func(id tool.ID) string
	// Closing reports whether the process ends.
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
	return &Approver{opts: opts, asking: map[string]int{}, Book: approval.NewBook(kept, &approval.Options{
		Expire: func() time.Duration { return opts.Settings.Load().Approval.Expire }, Record: opts.Record,
	})}, nil
}

// Close ends the questions that clients are being asked.
func (p *Approver) Close() { p.clients.close() }

// Waiting returns how many questions have no answer.
func (p *Approver) Waiting(ctx context.Context) (n int) {
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

// Approvals returns what the caller has waiting for a person, and what was answered lately; an operator sees that
// of all principals. The newest come first. Errors are *tool.Error.
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

// WatchApprovals has f called after each question and each answer, until stop is called. f must not block.
func (p *Approver) WatchApprovals(f func()) (stop func()) { return p.watchers.Add(f) }

// Answer answers an approval, once. For a caller that is no operator it is not found. By defaults to the operator's name.
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

// approvalError says what is wrong with an answer.
func (p *Approver) approvalError(ctx context.Context, id string, a Approval, err error) error {
	shown := sanitize.Line(id, 60)
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
	p.opts.Logger.ErrorContext(ctx, "approval is not kept", "approval", shown, "error", err)
	return &tool.Error{Kind: tool.Internal, Message: "the approval cannot be kept", Hint: "the operator's log says why", Err: err}
}
