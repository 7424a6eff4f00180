package approvals

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
	"sallyport/internal/watch"
)

const (
	// askTimeout is how long a client may take to answer during a call. It is shorter than the time that mcpserver parks calls.
	askTimeout = 4 * time.Minute
	// maxPaused is how many calls of one principal may wait for approval while their programs keep their sandboxes,
	// maxPausedAll the limit for all principals.
	maxPaused    = 16
	maxPausedAll = 64
)

// Approver requests approval of calls from people and applies their answers. It is safe for concurrent use.
type Approver struct {
	opts     Options
	Book     *approval.Store
	watchers watch.List
	clients  clientQuestions
	// endFollow ends following the other gateways.
	endFollow func()

	mu           sync.Mutex
	waitingCalls map[string]int // calls that wait, by principal
	waitingTotal int
}

// pause counts a call that is about to wait, unless too many do.
func (p *Approver) pause(principal string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waitingCalls[principal] >= maxPaused || p.waitingTotal >= maxPausedAll {
		return nil, false
	}
	p.waitingCalls[principal]++
	p.waitingTotal++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waitingTotal--
		if p.waitingCalls[principal]--; p.waitingCalls[principal] == 0 {
			delete(p.waitingCalls, principal)
		}
	}, true
}

// Approve requests approval of a call and waits for the answer. An error ends the call: there is no answer yet. In that
// case a program's call returns only after the program was stopped.
func (p *Approver) Approve(ctx context.Context, c tool.Call, v toolcall.Verdict) (toolcall.Verdict, error) {
	request, err := p.request(ctx, c, v)
	if err != nil {
		return v, err
	}
	if decided, ok, err := p.lookupDecision(ctx, request, v, ""); ok || err != nil {
		return decided, err
	}
	r := toolcall.ExecutionOf(ctx)
	if r == nil && toolcall.ScopeOf(ctx).Run != "" {
		return p.requestUnattended(ctx, c, request, v)
	}
	if r != nil && !r.Suspension.MayAsk() {
		v.Action, v.Message = policy.Deny, c.Tool.String()+" needs approval, and this program has requested too many"
		return v, nil
	}
	a, err := p.Book.Ask(ctx, request)
	if err != nil {
		return v, p.approvalError(ctx, "", a, err)
	}
	p.watchers.Notify()
	w := &waiter{approver: p, id: a.ID, expires: a.Expires, request: request, verdict: v, running: r, peer: c.Peer}
	if r != nil {
		w.peer = r.Peer
	}
	return w.wait(ctx, a)
}

// lookupDecision applies an earlier decision on a call, if there is one. own is the approval that the call waits for, "" for none.
func (p *Approver) lookupDecision(ctx context.Context, request approval.Request, v toolcall.Verdict, own string) (toolcall.Verdict, bool, error) {
	a, found, err := p.Book.Find(ctx, request, own)
	if err != nil {
		return v, false, p.approvalError(ctx, a.ID, a, err)
	}
	if !found {
		return v, false, nil
	}
	v.Approval = a.ID
	if v.Doubt {
		return applyDoubtAnswer(v, a), true, nil
	}
	if a.State == approval.Denied {
		v.Action, v.Message = policy.Deny, refusal(a)
		return v, true, nil
	}
	v.Action = policy.Allow
	return v, true, nil
}

// Renew restores a single-use approval if the upstream has not done the call yet but requires input (MCP 2026-07-28): the
// client repeats the call with the input.
func (p *Approver) Renew(ctx context.Context, v toolcall.Verdict, result tool.Result) {
	if v.Approval == "" || !bytes.Contains(result.Raw, []byte("input_required")) {
		return
	}
	var said struct {
		Type string `json:"resultType"`
	}
	if json.Unmarshal(result.Raw, &said) != nil || said.Type != "input_required" {
		return
	}
	if err := p.Book.Restore(context.WithoutCancel(ctx), v.Approval); err != nil {
		p.opts.Logger.WarnContext(ctx, "approval is used up", "approval", v.Approval, "error", err)
	}
}

// refusal returns the text that a program reads about a denial.
func refusal(a Approval) string {
	message := a.Tool + " was not approved by " + cmp.Or(a.By, "the user")
	if a.Note != "" {
		message += ": " + a.Note
	}
	return message
}

// waiter is one call that waits for approval.
type waiter struct {
	approver *Approver
	id       string
	expires  time.Time
	request  approval.Request
	verdict  toolcall.Verdict
	running  *toolcall.Execution
	peer     tool.Peer
}

// wait waits for an answer, for as long as the settings allow.
func (w *waiter) wait(ctx context.Context, a Approval) (toolcall.Verdict, error) {
	defer w.approver.Book.StopWaiting(w.id)
	defer tool.Pause(ctx)()
	if w.peer == nil && (w.running == nil && toolcall.ScopeOf(ctx).NoWait || w.running != nil && w.running.Unattended) {
		return w.suspend(ctx)
	}
	leave, ok := w.approver.pause(w.request.Principal)
	if !ok {
		return w.suspend(ctx)
	}
	defer leave()
	asking, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	patience := time.NewTimer(w.approver.opts.Settings.Load().Approval.Wait)
	defer patience.Stop()
	var turn, silent chan struct{} // closed when it is this request's turn, and when the client request has ended
	if w.peer != nil {
		patience.Stop()
		turn, silent = make(chan struct{}), make(chan struct{})
		work.Go(func() {
			defer close(silent)
			w.ask(asking, a, turn)
		})
	}
	return w.awaitAnswer(ctx, patience, turn, silent)
}

// awaitAnswer waits for an answer from any side.
func (w *waiter) awaitAnswer(ctx context.Context, patience *time.Timer, turn, silent <-chan struct{}) (toolcall.Verdict, error) {
	for {
		changed := w.approver.Book.Changes()
		if v, ok, err := w.approver.lookupDecision(ctx, w.request, w.verdict, w.id); ok || err != nil {
			w.withdraw(ctx)
			return v, err
		}
		select {
		case <-changed:
		case <-turn:
			turn = nil
			patience.Reset(askTimeout)
		case <-silent:
			turn, silent = nil, nil
			patience.Reset(w.approver.opts.Settings.Load().Approval.Wait)
		case <-patience.C:
			return w.suspend(ctx)
		case <-ctx.Done():
			return w.handleCancel(ctx)
		}
	}
}

// withdraw withdraws the approval, if the answer to another one has decided.
func (w *waiter) withdraw(ctx context.Context) {
	if err := w.approver.Book.Withdraw(context.WithoutCancel(ctx), w.id); err != nil {
		w.approver.opts.Logger.WarnContext(ctx, "approval is not withdrawn", "approval", w.id, "error", err)
	}
	w.approver.watchers.Notify()
}

// handleCancel handles a canceled call. If its program was suspended to wait for approval, or the gateway
// is closing, the approval stays pending: the execution that resumes it finds the answer.
func (w *waiter) handleCancel(ctx context.Context) (toolcall.Verdict, error) {
	if !w.approver.opts.Closing() && (w.running == nil || !w.running.Suspension.Suspended()) {
		w.withdraw(ctx)
	}
	return w.verdict, context.Cause(ctx)
}

// suspend ends a call without an answer. It stops the program of a program's call.
func (w *waiter) suspend(ctx context.Context) (toolcall.Verdict, error) {
	v := w.verdict
	v.Approval = w.id
	if w.running == nil {
		return v, &tool.Error{Kind: tool.Denied, Message: w.request.Tool + " waits for approval " + w.id, Err: &PendingError{w.id, w.expires},
			Hint: "a person can give it with `sallyport approvals approve " + w.id + "`; make the same call again then"}
	}
	w.running.Suspension.Suspend()
	<-ctx.Done()
	return v, toolcall.ErrSuspended
}
