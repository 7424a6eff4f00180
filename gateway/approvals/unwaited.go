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

// standTime is the shortest expiry of an approval for a workflow run, which has no user in front of it.
const standTime = 24 * time.Hour

// Patience returns how long a call may wait for approval: a fixed time if a client is asked, otherwise the time in the settings.
func (p *Approver) Patience(ctx context.Context, c tool.Call) time.Duration {
	peer := c.Peer
	if r := toolcall.ExecutionOf(ctx); r != nil {
		peer = r.Peer
	}
	if peer == nil {
		return p.opts.Settings.Load().Approval.Wait
	}
	return askTime
}

// Waits is wrapped in the error of a call that needs approval and does not wait (the call of a workflow run), or has timed out
// waiting. The approval stays pending, and a retry of the same call finds the answer.
type Waits struct {
	// Approval is the id of the approval, Until is when it expires.
	Approval string
	Until    time.Time
}

// Error implements error.
func (w *Waits) Error() string { return "it waits for approval " + w.Approval }

// standing returns the expiry of such an approval.
func (p *Approver) standing() time.Duration {
	return max(p.opts.Settings.Load().Approval.Expire, standTime)
}

// leaveStanding requests approval for a call that does not wait for the answer. Its peer, if any, is asked in the background.
func (p *Approver) leaveStanding(ctx context.Context, c tool.Call, request approval.Request, v toolcall.Verdict) (toolcall.Verdict, error) {
	a, err := p.Book.Ask(ctx, request)
	if err != nil {
		return v, p.approvalError(ctx, "", a, err)
	}
	p.Book.Leave(a.ID)
	p.watchers.Notify()
	p.askClient(ctx, a, c.Peer)
	v.Approval = a.ID
	return v, &tool.Error{
		Kind: tool.Denied, Message: a.Tool + " waits for approval " + a.ID, Hint: "a person can give it with `sallyport approvals approve " + a.ID + "`",
		Err: &Waits{a.ID, a.Expires},
	}
}

// clientQuestions are the requests to clients that run in the background. The zero value has none.
type clientQuestions struct {
	mu     sync.Mutex
	asking map[string]context.CancelFunc // by approval
	closed bool
	work   sync.WaitGroup
}

// begin calls do in the background, unless the client is already being asked about the approval.
func (c *clientQuestions) begin(ctx context.Context, id string, do func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.asking[id] != nil {
		return
	}
	if c.asking == nil {
		c.asking = map[string]context.CancelFunc{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	c.asking[id] = cancel
	c.work.Go(func() {
		defer c.end(id)
		do(ctx)
	})
}

func (c *clientQuestions) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop := c.asking[id]; stop != nil {
		stop()
		delete(c.asking, id)
	}
}

// close cancels all requests and waits for them.
func (c *clientQuestions) close() {
	c.mu.Lock()
	c.closed = true
	for _, stop := range c.asking {
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
	w := &waiting{approver: p, id: a.ID, request: a.Request, peer: peer}
	p.clients.begin(ctx, a.ID, func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		var watch sync.WaitGroup
		defer watch.Wait()
		defer stop()
		watch.Go(func() {
			defer stop()
			p.whileWaiting(ctx, a.ID)
		})
		w.ask(ctx, a, make(chan struct{}))
	})
}

// whileWaiting returns when an approval is no longer pending, or ctx ends.
func (p *Approver) whileWaiting(ctx context.Context, id string) {
	for {
		changed := p.Book.Changed()
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

// peerOfRun passes on one request at a time, and none after the call that started the run has ended.
type peerOfRun struct {
	tool.Peer
	turn chan struct{}
	over context.Context //nolint:containedctx // of the call that the peer belongs to
}

// OnePeer returns a peer that passes on one request at a time, until ctx ends: a run may outlive the call that started it. It returns nil for nil.
func OnePeer(ctx context.Context, peer tool.Peer) tool.Peer {
	if peer == nil {
		return nil
	}
	return &peerOfRun{Peer: peer, turn: make(chan struct{}, 1), over: ctx}
}

// Notify implements [tool.Peer].
func (p *peerOfRun) Notify(method string, params json.RawMessage) {
	if p.over.Err() == nil {
		p.Peer.Notify(method, params)
	}
}

// Ask implements [tool.Peer].
func (p *peerOfRun) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.over, cancel)()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
	}
	if p.over.Err() != nil {
		return nil, tool.ErrCannotAsk
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.Peer.Ask(ctx, method, params)
}
