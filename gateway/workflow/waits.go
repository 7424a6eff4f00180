package workflow

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/approval"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// What a run can wait for.
const (
	forTime     = "time"
	forApproval = "approval"
	forForm     = "form"
)

// whyInterrupted is the Pending.Why of a question whether to repeat an interrupted step.
const whyInterrupted = "interrupted"

// longDelay is the retry delay from which on the run counts as waiting.
const longDelay = 10 * time.Second

// Approvals asks people about runs. The gateway's approver implements it.
type Approvals interface {
	Inquire(ctx context.Context, q approvals.Question) (approvals.Approval, error)
	Approval(ctx context.Context, id string) (approvals.Approval, error)
	Withdraw(ctx context.Context, id string) error
	WatchApprovals(f func()) (stop func())
}

// waitRun runs wait steps and waits for approvals.
type waitRun struct{ *run }

// wait waits for a time or a person.
func (r waitRun) wait(ctx context.Context, f *frame, n *node, do *spec.Wait, at location, attempt int) (result, error) {
	if do.Approval != nil {
		return r.waitApproval(ctx, f, n, do.Approval, at, attempt)
	}
	if out, done, err := toolRun(r).callStub(ctx, n, at, attempt, nil); done || err != nil {
		return out, err
	}
	if pending := at.history.pendingWait(); pending != nil && pending.For == forTime {
		return result{status: outcomeOK}, r.sleep(ctx, at, pending.Until)
	}
	until, err := r.deadline(ctx, f, n, do)
	if err != nil {
		return result{}, err
	}
	return result{status: outcomeOK}, r.sleep(ctx, at, until)
}

// maxWait limits the time that a step waits.
const maxWait = 366 * 24 * time.Hour

// deadline returns the time at which a wait ends.
func (r waitRun) deadline(ctx context.Context, f *frame, n *node, do *spec.Wait) (time.Time, error) {
	text, err := f.text(ctx, n.with, "the time to wait")
	if err != nil {
		return time.Time{}, err
	}
	var until time.Time
	if do.For != nil {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return time.Time{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%q is not a duration", sanitize.Line(text, 60)), Hint: "write 90s, 5m or 1h30m"}
		}
		until = time.Now().Add(d)
	} else if until, err = time.Parse(time.RFC3339, text); err != nil {
		return time.Time{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%q is not a time", sanitize.Line(text, 60)), Hint: "write it as 2026-11-22T09:00:00Z"}
	}
	if time.Until(until) > maxWait {
		return time.Time{}, &tool.Error{Kind: tool.Invalid, Message: "a step waits for 366 days at most, not until " + until.UTC().Format(time.RFC3339)}
	}
	return until, nil
}

// sleep waits until a time, which it logs: a continued run waits until the same time.
func (r waitRun) sleep(ctx context.Context, at location, until time.Time) error {
	return r.suspend(ctx, at, Pending{Step: at.path, For: forTime, Until: until.UTC()}, func() error {
		defer r.engine.setTimer(ctx, r.id, at.path, until)()
		return sleepUntil(ctx, until)
	})
}

// sleepUntil waits until a time, or until ctx ends.
func sleepUntil(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// suspend logs what a step waits for, shows it in the state of the run, and calls wait. It pauses the clocks of ctx.
func (r waitRun) suspend(ctx context.Context, at location, p Pending, wait func() error) error {
	if known := at.history.pendingWait(); known == nil || known.For != p.For || known.Approval != p.Approval || !known.Until.Equal(p.Until) {
		if err := r.log.write(ctx, Event{Kind: Waits, Path: at.path, Pending: &p}); err != nil {
			return err
		}
	}
	defer tool.Pause(ctx)()
	defer r.state.wait(p)()
	return wait()
}

// waitApproval asks a person for approval and waits for it.
func (r waitRun) waitApproval(ctx context.Context, f *frame, n *node, do *spec.Approval, at location, attempt int) (result, error) {
	message, err := f.text(ctx, n.with, "the message")
	if err != nil {
		return result{}, err
	}
	a, err := r.inquire(ctx, approvals.Question{Step: at.path, Attempt: attempt, Message: message, Expires: do.Timeout})
	if err != nil {
		return result{}, err
	}
	if a, err = r.waitAnswer(ctx, at, Pending{Step: at.path, For: forApproval, Approval: a.ID, Until: a.Expires}); err != nil {
		return result{}, err
	}
	return normalize(map[string]any{"approved": true, "by": a.By, "note": a.Note}, maxOutput)
}

// inquire creates a question to people. The same question of the same attempt is asked once.
func (r waitRun) inquire(ctx context.Context, q approvals.Question) (approvals.Approval, error) {
	if r.engine.opts.Approvals == nil {
		return approvals.Approval{}, &tool.Error{Kind: tool.Denied, Message: "nobody can be asked here", Hint: "run it in a gateway: sallyport serve"}
	}
	q.Run, q.Workflow, q.Peer = r.id, r.started.Workflow, r.peer
	q.Attempt += 1000 * r.resumes
	return r.engine.opts.Approvals.Inquire(ctx, q)
}

// waitDecision waits until the approval of a call is decided. A refusal is not an error here: the repeated call reports it.
func (r waitRun) waitDecision(ctx context.Context, at location, p Pending) error {
	_, err := r.waitAnswer(ctx, at, p)
	if e := tool.AsError(err); err != nil && e.Kind == tool.Denied {
		return nil
	}
	return err
}

// waitDecisions waits until all of the approvals are decided.
func (r waitRun) waitDecisions(ctx context.Context, at location, list []approvals.Approval) error {
	for _, a := range list {
		if err := r.waitDecision(ctx, at, Pending{Step: at.path, For: forApproval, Approval: a.ID, Until: a.Expires}); err != nil {
			return err
		}
	}
	return nil
}

// waitAnswer waits for a person's answer. A refusal is an error of kind denied. If ctx ends first, the question is withdrawn.
func (r waitRun) waitAnswer(ctx context.Context, at location, p Pending) (a approvals.Approval, err error) {
	err = r.suspend(ctx, at, p, func() error {
		for {
			changed := r.engine.approvalsChanged.updates()
			a, err = r.engine.opts.Approvals.Approval(ctx, p.Approval)
			if isRefused(err) {
				if err = r.delayRefused(ctx); err == nil {
					continue // returning the error would begin the step again
				}
			}
			if err != nil {
				return err
			}
			if a.State != approval.Waiting {
				return decisionError(a)
			}
			if err = r.engine.approvalsChanged.wait(ctx, changed, a.Expires); err != nil {
				r.withdraw(ctx, p.Approval)
				return err
			}
		}
	})
	return a, err
}

// decisionError returns nil for an approval, else the error for its state.
func decisionError(a approvals.Approval) error {
	switch a.State {
	case approval.Allowed, approval.Used, approval.Done:
		return nil
	case approval.Expired:
		return &tool.Error{Kind: tool.Timeout, Message: "nobody has answered in time"}
	case approval.Withdrawn:
		return &tool.Error{Kind: tool.Canceled, Message: "the question was withdrawn"}
	case approval.Lost:
		return &tool.Error{Kind: tool.Canceled, Message: "the record of the question was damaged", Hint: "resume the run: it asks again"}
	}
	message := "it was not approved by " + cmp.Or(a.By, "the user")
	if a.Note != "" {
		message += ": " + a.Note
	}
	return &tool.Error{Kind: tool.Denied, Message: message}
}

// withdraw withdraws the question of a canceled run. The question of a released run stays open for the engine that continues the run.
func (r waitRun) withdraw(ctx context.Context, id string) {
	if hard := lifetimeOf(ctx); hard != nil && hard.Err() != nil {
		return
	}
	if err := r.engine.opts.Approvals.Withdraw(context.WithoutCancel(ctx), id); err != nil {
		r.engine.log.Debug("cannot withdraw a question", "run", r.id, "approval", id, "error", err)
	}
}

// broadcaster notifies all goroutines that wait for answers. It is safe for concurrent use.
type broadcaster struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcaster() *broadcaster { return &broadcaster{ch: make(chan struct{})} }

// notify wakes all waiting goroutines.
func (b *broadcaster) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}

// updates returns a channel that the next tell closes.
func (b *broadcaster) updates() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

// wait returns when changed is closed, or when a question expires, for which there is no notification.
func (b *broadcaster) wait(ctx context.Context, changed <-chan struct{}, expires time.Time) error {
	timer := time.NewTimer(max(time.Until(expires)+time.Second, time.Second))
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
