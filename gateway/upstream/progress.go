package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"

	"sallyport/gateway/upstream/deferred"
	"sallyport/internal/tool"
)

// Limits of an upstream's notifications, for each call and for each link; more are
// dropped.
const (
	noticeBurst = 200
	noticeRate  = 100     // a second
	maxNotice   = 1 << 20 // bytes of one
)

// exchange is an in-flight request with a peer. It is safe for concurrent use.
type exchange struct {
	peer   tool.Peer
	token  json.RawMessage // the caller's own progress token, nil if it gave none
	budget *rate.Limiter
	// begin returns the context of a request that the upstream sends during the call.
	begin    func() (context.Context, context.CancelFunc)
	requests sync.WaitGroup
	task     bool         // the call may become a task, and last longer than its request
	taskID   atomic.Value // the task's id

	mu           sync.Mutex
	closed       bool // the call is about to return: the peer must not be used
	requestCount int
	reported     bool // the upstream reports progress
	steps        int  // the messages about the status of its task
	cancels      map[jsonrpc.ID]context.CancelFunc
}

// progress forwards the notifications of an upstream during a request.
type progress struct{ *wire }

// exchange registers the request with that ID as one with a peer. closeIt unregisters
// it and waits until the peer is no longer used.
func (w progress) exchange(ctx context.Context, id int64, call tool.Call, task bool) (e *exchange, closeIt func()) {
	ctx, cancel := context.WithCancel(ctx)
	e = &exchange{
		peer: call.Peer, task: task, token: progressToken(call.Params["_meta"]),
		budget:  rate.NewLimiter(noticeRate, noticeBurst),
		begin:   func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
		cancels: map[jsonrpc.ID]context.CancelFunc{},
	}
	w.mu.Lock()
	w.exchanges[id] = e
	w.mu.Unlock()
	return e, func() {
		w.mu.Lock()
		delete(w.exchanges, id)
		w.mu.Unlock()
		e.mu.Lock()
		e.closed = true
		e.mu.Unlock()
		cancel()
		e.requests.Wait()
	}
}

func progressToken(meta json.RawMessage) json.RawMessage {
	if meta == nil {
		return nil
	}
	return member(meta, "progressToken")
}

func (e *exchange) notify(method string, params json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed && e.budget.Allow() {
		e.peer.Notify(method, params)
	}
}

// handle handles one notification of the upstream. owner is the call in whose
// response it arrived, nil if the connection does not tell.
func (w progress) handle(msg *jsonrpc.Request, owner *exchange) {
	switch msg.Method {
	case "notifications/tools/list_changed":
		w.changed(toolPart)
	case "notifications/resources/list_changed":
		w.changed(resourcePart | templatePart)
	case "notifications/prompts/list_changed":
		w.changed(promptPart)
	case deferred.StatusNotification, deferred.LegacyStatusNotification:
		w.tasks.Notify(msg.Params)
	case "notifications/progress":
		w.forwardProgress(msg.Params)
	case "notifications/cancelled":
		w.cancelPeerRequest(msg.Params)
	case "notifications/message":
		w.forwardLog(msg, owner)
	case "notifications/resources/updated", "notifications/elicitation/complete":
		w.notifyOutside(msg)
	}
}

// forwardLog forwards a log message to the call that it arrived with or, if that is
// unknown, to all calls in flight, or else to OnNotice.
func (w progress) forwardLog(msg *jsonrpc.Request, owner *exchange) {
	if len(msg.Params) > maxNotice {
		return
	}
	if owner != nil {
		owner.notify(msg.Method, msg.Params)
		return
	}
	all := w.inFlight()
	for _, e := range all {
		e.notify(msg.Method, msg.Params)
	}
	if len(all) == 0 {
		w.notifyOutside(msg)
	}
}

func (w progress) notifyOutside(msg *jsonrpc.Request) {
	if len(msg.Params) <= maxNotice && w.budget.Allow() {
		w.notice(msg.Method, msg.Params)
	}
}

// inFlight returns the exchanges in flight.
func (w progress) inFlight() []*exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*exchange, 0, len(w.exchanges))
	for _, e := range w.exchanges {
		all = append(all, e)
	}
	return all
}

// forwardProgress forwards progress to the call with its token, with the caller's
// own token if it has one.
func (w progress) forwardProgress(params json.RawMessage) {
	fields := members(params)
	var token int64
	if len(params) > maxNotice || json.Unmarshal(orNull(fields["progressToken"]), &token) != nil {
		return
	}
	w.mu.Lock()
	e := w.exchanges[token]
	w.mu.Unlock()
	if e == nil {
		return
	}
	e.mu.Lock()
	e.reported = true
	e.mu.Unlock()
	e.progress(fields)
}

// progress forwards progress with the caller's own token.
func (e *exchange) progress(fields map[string]json.RawMessage) {
	delete(fields, "progressToken")
	if e.token != nil {
		fields["progressToken"] = e.token
	}
	if told, err := marshal(fields); err == nil {
		e.notify("notifications/progress", told)
	}
}
