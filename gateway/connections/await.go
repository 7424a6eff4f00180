package connections

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// askTimeout is how long a person who was asked by a client may take to log in. It is shorter than the time that
	// mcpserver parks calls.
	askTimeout = 4 * time.Minute
	// pollInterval is how often logins by other processes are looked for.
	pollInterval = time.Second
)

// errDeclined says that the user declined to log in.
var errDeclined = errors.New("declined")

// Await waits until the caller, a principal, has logged in to an upstream after a time. The clock of its program stops. Its
// client is asked to open the page of the login, if it can; otherwise the wait is that of approvals. Errors are *tool.Error.
func (c *Connections) Await(ctx context.Context, up config.Upstream, call tool.Call, after time.Time) error {
	defer tool.Pause(ctx)()
	k := key{up.ID, tool.Principal(ctx)}
	login, page := c.opts.Login(up, k.principal), Page(c.opts.Site, up.ID)
	changed := make(chan struct{}, 1)
	defer c.watchers.Add(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	q := c.ask(ctx, k, page, peerOf(ctx, call))
	defer q.end()
	patience := time.NewTimer(q.patience(c.opts.Settings.Load().Approval.Wait))
	defer patience.Stop()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		if status, err := login.Status(); err == nil && status.LoggedIn && status.IsSince(after) {
			q.complete()
			return nil
		}
		select {
		case <-changed:
		case <-poll.C:
			if q.follows && !c.isAsking(k) { // the client could not be asked, or declined
				q.follows = false
				patience.Reset(c.opts.Settings.Load().Approval.Wait)
			}
		case err := <-q.ended:
			if errors.Is(err, errDeclined) {
				return loginError(up, page, "the user declined to log in to "+up.ID)
			}
			if q.ended = nil; err != nil { // the client cannot be asked
				patience.Reset(c.opts.Settings.Load().Approval.Wait)
			}
		case <-patience.C:
			return loginError(up, page, "upstream "+up.ID+" needs a login of this user")
		case <-ctx.Done():
			return tool.AsError(context.Cause(ctx))
		}
	}
}

// loginError is the error of a call without a login of its principal. It is read by a model.
func loginError(up config.Upstream, page, message string) error {
	hint := "ask the operator to log in for this user"
	if page != "" {
		hint = "ask the user to log in at " + page + ", then make the call again"
	}
	return &tool.Error{Kind: tool.Denied, Message: message, Hint: hint}
}

// peerOf returns the client of the program, or of the call.
func peerOf(ctx context.Context, call tool.Call) tool.Peer {
	if r := toolcall.ExecutionOf(ctx); r != nil {
		return r.Peer
	}
	return call.Peer
}

// question asks a client to open the page of a login.
type question struct {
	id   string
	peer tool.Peer // nil if this call asks no client
	// follows says that another call asks the client for the same login.
	follows bool
	cancel  context.CancelFunc
	done    chan struct{}
	// ended gets the result of the request: nil if the user opens the page.
	ended chan error
	// leave ends the turn of the principal.
	leave func()
}

// ask asks the client in the background, unless it has no client or another call has asked it.
func (c *Connections) ask(ctx context.Context, k key, page string, peer tool.Peer) *question {
	q := &question{leave: func() {}}
	if peer == nil || page == "" {
		return q
	}
	if q.follows = !c.beginAsking(k); q.follows {
		return q
	}
	q.id, q.peer, q.leave = rand.Text(), peer, func() { c.endAsking(k) }
	q.ended, q.done = make(chan error, 1), make(chan struct{})
	ctx, q.cancel = context.WithCancel(ctx)
	go func() {
		defer close(q.done)
		q.ended <- q.send(ctx, k, page)
	}()
	return q
}

// send sends the request, and returns an error unless the user accepts it.
func (q *question) send(ctx context.Context, k key, page string) error {
	if r := toolcall.ExecutionOf(ctx); r != nil && r.Suspension != nil {
		select {
		case r.Suspension.Turn <- struct{}{}:
			defer func() { <-r.Suspension.Turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	params, err := sanitize.JSON(map[string]any{
		"mode": "url", "elicitationId": q.id, "url": page,
		"message": "Sallyport: log in to " + k.upstream + ", so that its tools can be called for you.",
	})
	if err != nil {
		return err
	}
	reply, err := q.peer.Ask(ctx, "elicitation/create", params)
	if err != nil {
		return err
	}
	var answer struct{ Action string }
	if json.Unmarshal(reply, &answer) != nil || answer.Action != "accept" {
		return errDeclined
	}
	return nil
}

// patience returns how long to wait.
func (q *question) patience(without time.Duration) time.Duration {
	if q.peer == nil && !q.follows {
		return without
	}
	return askTimeout
}

// complete tells the client that the login is complete.
func (q *question) complete() {
	if q.peer == nil {
		return
	}
	params, err := json.Marshal(map[string]string{"elicitationId": q.id})
	if err == nil {
		q.peer.Notify("notifications/elicitation/complete", params)
	}
}

// end cancels the request and waits for it.
func (q *question) end() {
	if q.cancel != nil {
		q.cancel()
		<-q.done
	}
	q.leave()
}

// beginAsking reports whether no other call asks for the same login.
func (c *Connections) beginAsking(k key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking[k] {
		return false
	}
	c.asking[k] = true
	return true
}

func (c *Connections) isAsking(k key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking[k]
}

func (c *Connections) endAsking(k key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asking, k)
}
