package approvals

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
)

// minUnattendedExpiry is the shortest expiry of an approval for a workflow run, which has no user in front of it.
const minUnattendedExpiry = 24 * time.Hour

// ApprovalTimeout returns how long a call may wait for approval: a fixed time if a client is asked, otherwise the time in the settings.
func (p *Approver) ApprovalTimeout(ctx context.Context, c tool.Call) time.Duration {
	peer := c.Peer
	if r := toolcall.ExecutionOf(ctx); r != nil {
		peer = r.Peer
	}
	if peer == nil {
		return p.opts.Settings.Load().Approval.Wait
	}
	return askTimeout
}

// PendingError is wrapped in the error of a call that needs approval and does not wait (the call of a workflow run), or has timed out
// waiting. The approval stays pending, and a retry of the same call finds the answer.
type PendingError struct {
	// Approval is the id of the approval, Until is when it expires.
	Approval string
	Until    time.Time
}

// Error implements error.
func (w *PendingError) Error() string { return "it waits for approval " + w.Approval }

// unattendedExpiry returns the expiry of such an approval.
func (p *Approver) unattendedExpiry() time.Duration {
	return max(p.opts.Settings.Load().Approval.Expire, minUnattendedExpiry)
}

// requestUnattended requests approval for a call that does not wait for the answer. Its peer, if any, is asked in the background.
func (p *Approver) requestUnattended(ctx context.Context, c tool.Call, request approval.Request, v toolcall.Verdict) (toolcall.Verdict, error) {
	a, err := p.Book.Ask(ctx, request)
	if err != nil {
		return v, p.approvalError(ctx, "", a, err)
	}
	p.Book.StopWaiting(a.ID)
	p.watchers.Notify()
	p.askClient(ctx, a, c.Peer)
	v.Approval = a.ID
	return v, &tool.Error{
		Kind: tool.Denied, Message: a.Tool + " waits for approval " + a.ID, Hint: "a person can give it with `sallyport approvals approve " + a.ID + "`",
		Err: &PendingError{a.ID, a.Expires},
	}
}

// clientQuestions are the requests to clients that run in the background. The zero value has none.
type clientQuestions struct {
	mu      sync.Mutex
	cancels map[string]context.CancelFunc // by approval
	closed  bool
	work    sync.WaitGroup
}

// begin calls do in the background, unless the client is already being asked about the approval.
func (c *clientQuestions) begin(ctx context.Context, id string, do func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.cancels[id] != nil {
		return
	}
	if c.cancels == nil {
		c.cancels = map[string]context.CancelFunc{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	c.cancels[id] = cancel
	c.work.Go(func() {
		defer c.end(id)
		do(ctx)
	})
}

func (c *clientQuestions) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop := c.cancels[id]; stop != nil {
		stop()
		delete(c.cancels, id)
	}
}

// close cancels all requests and waits for them.
func (c *clientQuestions) close() {
	c.mu.Lock()
	c.closed = true
	for _, stop := range c.cancels {
		stop()
	}
	c.mu.Unlock()
	c.work.Wait()
}

// askClient asks a peer about a pending approval until it has an answer from any side.
func (p *Approver) askClient(ctx context.Context, a Approval, peer tool.Peer) {
	if peer == nil {
		return
	}
	w := &waiter{approver: p, id: a.ID, request: a.Request, peer: peer}
	p.clients.begin(ctx, a.ID, func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		var watch sync.WaitGroup
		defer watch.Wait()
		defer stop()
		watch.Go(func() {
			defer stop()
			p.waitAnswered(ctx, a.ID)
		})
		w.ask(ctx, a, make(chan struct{}))
	})
}

// waitAnswered returns when an approval is no longer pending, or ctx ends.
func (p *Approver) waitAnswered(ctx context.Context, id string) {
	for {
		changed := p.Book.Changes()
		if a, err := p.Book.Get(ctx, id); err != nil || a.State != approval.Waiting {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// runPeer passes on one request at a time, and none after the call that started the run has ended.
type runPeer struct {
	tool.Peer
	turn    chan struct{}
	callCtx context.Context //nolint:containedctx // of the call that the peer belongs to
}

// SerialPeer returns a peer that passes on one request at a time, until ctx ends: a run may outlive the call that started it. It returns nil for nil.
func SerialPeer(ctx context.Context, peer tool.Peer) tool.Peer {
	if peer == nil {
		return nil
	}
	return &runPeer{Peer: peer, turn: make(chan struct{}, 1), callCtx: ctx}
}

// Notify implements [tool.Peer].
func (p *runPeer) Notify(method string, params json.RawMessage) {
	if p.callCtx.Err() == nil {
		p.Peer.Notify(method, params)
	}
}

// Ask implements [tool.Peer].
func (p *runPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.callCtx, cancel)()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
	}
	if p.callCtx.Err() != nil {
		return nil, tool.ErrCannotAsk
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.Peer.Ask(ctx, method, params)
}
