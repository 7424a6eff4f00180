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

// whyInterrupted is in the Pending of a question whether a step is made again.
const whyInterrupted = "interrupted"

// longRest is how long a retry's pause is from which on the run counts as waiting.
const longRest = 10 * time.Second

// People can be asked about runs: *gateway.Gateway.
type People interface {
	Inquire(ctx context.Context, q approvals.Question) (approvals.Approval, error)
	Approval(ctx context.Context, id string) (approvals.Approval, error)
	Withdraw(ctx context.Context, id string) error
	WatchApprovals(f func()) (stop func())
}

// waitRun has steps wait for times and people.
type waitRun struct{ *run }

// wait waits for a time or a person.
func (r waitRun) wait(ctx context.Context, f *frame, n *node, do *spec.Wait, at spot, attempt int) (result, error) {
	if do.Approval != nil {
		return r.waitApproval(ctx, f, n, do.Approval, at, attempt)
	}
	if out, done, err := toolRun(r).instead(ctx, n, at, attempt, nil); done || err != nil {
		return out, err
	}
	if pending := at.past.waited(); pending != nil && pending.For == forTime {
		return result{status: outcomeOK}, r.sleep(ctx, at, pending.Until)
	}
	until, err := r.until(ctx, f, n, do)
	if err != nil {
		return result{}, err
	}
	return result{status: outcomeOK}, r.sleep(ctx, at, until)
}

// maxWait is the longest time that a step waits.
const maxWait = 366 * 24 * time.Hour

// until is when a wait is over.
func (r waitRun) until(ctx context.Context, f *frame, n *node, do *spec.Wait) (time.Time, error) {
	text, err := f.text(ctx, n.with, "the time to wait")
	if err != nil {
		return time.Time{}, err
	}
	var until time.Time
	if do.For != nil {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return time.Time{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%q is no time to wait", sanitize.Line(text, 60)), Hint: "write 90s, 5m or 1h30m"}
		}
		until = time.Now().Add(d)
	} else if until, err = time.Parse(time.RFC3339, text); err != nil {
		return time.Time{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%q is no time", sanitize.Line(text, 60)), Hint: "write it as 2026-11-22T09:00:00Z"}
	}
	if time.Until(until) > maxWait {
		return time.Time{}, &tool.Error{Kind: tool.Invalid, Message: "a step waits for 366 days at most, not until " + until.UTC().Format(time.RFC3339)}
	}
	return until, nil
}

// sleep waits until a time. It is on record, so who continues with the run waits for the same.
func (r waitRun) sleep(ctx context.Context, at spot, until time.Time) error {
	return r.hold(ctx, at, Pending{Step: at.path, For: forTime, Until: until.UTC()}, func() error {
		defer r.engine.alarm(ctx, r.id, at.path, until)()
		return pause(ctx, until)
	})
}

// pause waits until a time, or until ctx ends.
func pause(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hold notes what a step waits for, on record and in how the run stands, while wait waits.
func (r waitRun) hold(ctx context.Context, at spot, p Pending, wait func() error) error {
	if known := at.past.waited(); known == nil || known.For != p.For || known.Approval != p.Approval || !known.Until.Equal(p.Until) {
		if err := r.log.write(ctx, Event{Kind: Waits, Path: at.path, Pending: &p}); err != nil {
			return err
		}
	}
	defer tool.Pause(ctx)()
	defer r.state.wait(p)()
	return wait()
}

// waitApproval asks a person whether to go on.
func (r waitRun) waitApproval(ctx context.Context, f *frame, n *node, do *spec.Approval, at spot, attempt int) (result, error) {
	message, err := f.text(ctx, n.with, "the message")
	if err != nil {
		return result{}, err
	}
	a, err := r.inquire(ctx, approvals.Question{Step: at.path, Attempt: attempt, Message: message, Expires: do.Timeout})
	if err != nil {
		return result{}, err
	}
	if a, err = r.answered(ctx, at, Pending{Step: at.path, For: forApproval, Approval: a.ID, Until: a.Expires}); err != nil {
		return result{}, err
	}
	return normal(map[string]any{"approved": true, "by": a.By, "note": a.Note}, maxOutput)
}

// inquire asks people something; the same question of the same attempt is asked once.
func (r waitRun) inquire(ctx context.Context, q approvals.Question) (approvals.Approval, error) {
	if r.engine.opts.People == nil {
		return approvals.Approval{}, &tool.Error{Kind: tool.Denied, Message: "nobody can be asked here", Hint: "run it in a gateway: sallyport serve"}
	}
	q.Run, q.Workflow, q.Peer = r.id, r.started.Workflow, r.peer
	q.Attempt += 1000 * r.entry
	return r.engine.opts.People.Inquire(ctx, q)
}

// approved waits until a call's question has an answer, whatever that is: the call finds it when it is made again.
func (r waitRun) approved(ctx context.Context, at spot, p Pending) error {
	_, err := r.answered(ctx, at, p)
	if e := tool.AsError(err); err != nil && e.Kind == tool.Denied {
		return nil
	}
	return err
}

// allApproved waits until all of the questions have an answer.
func (r waitRun) allApproved(ctx context.Context, at spot, list []approvals.Approval) error {
	for _, a := range list {
		if err := r.approved(ctx, at, Pending{Step: at.path, For: forApproval, Approval: a.ID, Until: a.Expires}); err != nil {
			return err
		}
	}
	return nil
}

// answered waits for a person's answer. A refusal is an error of kind denied.
func (r waitRun) answered(ctx context.Context, at spot, p Pending) (a approvals.Approval, err error) {
	err = r.hold(ctx, at, p, func() error {
		for {
			changed := r.engine.asked.changed()
			if a, err = r.engine.opts.People.Approval(ctx, p.Approval); err != nil {
				return err
			}
			if a.State != approval.Waiting {
				return verdict(a)
			}
			if err = r.engine.asked.wait(ctx, changed, a.Expires); err != nil {
				r.withdraw(ctx, p.Approval)
				return err
			}
		}
	})
	return a, err
}

// verdict is what an answer says.
func verdict(a approvals.Approval) error {
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

// withdraw takes back a question that a canceled run does not need an answer to. What was given up is asked again by who continues.
func (r waitRun) withdraw(ctx context.Context, id string) {
	if hard := hardOf(ctx); hard != nil && hard.Err() != nil {
		return
	}
	if err := r.engine.opts.People.Withdraw(context.WithoutCancel(ctx), id); err != nil {
		r.engine.log.Debug("question is not withdrawn", "run", r.id, "approval", id, "error", err)
	}
}

// bell wakes all who wait for answers.
type bell struct {
	mu   sync.Mutex
	ring chan struct{}
}

func newBell() *bell { return &bell{ring: make(chan struct{})} }

// tell wakes them.
func (b *bell) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ring)
	b.ring = make(chan struct{})
}

// changed returns what is closed by the next tell.
func (b *bell) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ring
}

// wait returns after a tell, or when a question expires, which causes no tell.
func (b *bell) wait(ctx context.Context, changed <-chan struct{}, expires time.Time) error {
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
