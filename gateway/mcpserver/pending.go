package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"sallyport/gateway/toolcall"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// A client of revision 2026-07-28 cannot receive requests during a call: the
// requests are the call's result, and the client repeats the call with its responses.
// An upstream of that revision does the same, and its requests are passed through.
// An older upstream sends a request during its call, and the gateway during a
// program. The call is pending here until the client repeats it with its ticket
// (ticket.go).

// pendingCalls manages the pending calls of modern clients. Close it.
type pendingCalls struct {
	store *pendingStore
	work  sync.WaitGroup
}

func newPendingCalls(key []byte) *pendingCalls { return &pendingCalls{store: newPendingStore(key)} }

// close cancels the pending calls and waits for all of them.
func (ts *pendingCalls) close() {
	ts.store.close()
	ts.work.Wait()
}

// pendingCall is one call of a modern client, over any number of rounds.
type pendingCall struct {
	client     atomic.Pointer[client] // of the current round
	questions  chan *question
	done       chan struct{} // closed when result and err are set
	result     any
	err        error
	cancel     context.CancelCauseFunc
	unanswered []*question // sent to the client, without a response
	lastKey    int
}

// inputRequired holds the requests that a client must answer before its call continues.
type inputRequired struct {
	questions []*question
	ticket    string
}

// callFunc makes a call that may send requests to its peer.
type callFunc func(ctx context.Context, peer tool.Peer) (any, error)

// question is a request to the client that a call waits for.
type question struct {
	key    string
	method string
	params json.RawMessage
	reply  chan json.RawMessage // holds one
	// execution is the ID of the waiting program, "" for none.
	execution string
}

// Notify implements [tool.Peer].
func (t *pendingCall) Notify(method string, params json.RawMessage) {
	t.client.Load().Notify(method, params)
}

// Ask implements [tool.Peer].
func (t *pendingCall) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := t.client.Load().checkAnswers(ctx, method, params); err != nil {
		return nil, err
	}
	q := &question{method: method, params: orEmptyObject(params), reply: make(chan json.RawMessage, 1), execution: toolcall.ExecutionID(ctx)}
	select {
	case t.questions <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case answer := <-q.reply:
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// callOrResume makes a call for a modern client, or resumes a pending one. It returns the result of the call, or the requests to the client.
func (ts *pendingCalls) callOrResume(ctx context.Context, c *client, method string, params object, start callFunc) (any, error) {
	bound := requestDigest(ctx, method, params)
	t, err := ts.store.resume(decodeString(params["requestState"]), bound)
	if err != nil {
		return nil, err
	}
	if t == nil {
		t = ts.begin(ctx, c, start)
	} else {
		t.client.Store(c)
		t.answer(params["inputResponses"])
	}
	return ts.round(ctx, t, bound)
}

// begin starts a call that outlives its request.
func (ts *pendingCalls) begin(ctx context.Context, c *client, call callFunc) *pendingCall {
	ctx, end := context.WithCancelCause(telemetry.TraceContextOf(ctx).In(tool.Detach(ctx)))
	t := &pendingCall{questions: make(chan *question), done: make(chan struct{}), cancel: end}
	t.client.Store(c)
	ts.work.Go(func() {
		defer close(t.done)
		t.result, t.err = call(ctx, t)
	})
	return t
}

// round waits for the result of the call, or for its next requests.
func (ts *pendingCalls) round(ctx context.Context, t *pendingCall, bound []byte) (any, error) {
	over, err := t.wait(ctx)
	if over {
		return t.result, err
	}
	t.addReady()
	ticket, err := ts.store.add(t, tool.Principal(ctx), bound)
	if err != nil {
		t.cancel(err)
		<-t.done
		return nil, err
	}
	return inputRequired{t.unanswered, ticket}, nil
}

// wait waits until the call is done, or has a request for the client.
func (t *pendingCall) wait(ctx context.Context) (over bool, err error) {
	select {
	case <-t.done: // it may have ended while the client prepared its response
		t.cancel(nil)
		return true, t.err
	default:
	}
	if len(t.unanswered) > 0 { // without a response: sent again
		return false, nil
	}
	select {
	case <-t.done:
		t.cancel(nil)
		return true, t.err
	case q := <-t.questions:
		t.addQuestion(q)
		return false, nil
	case <-ctx.Done():
		t.cancel(context.Cause(ctx))
		<-t.done
		return true, context.Cause(ctx)
	}
}

func (t *pendingCall) addQuestion(q *question) {
	t.lastKey++
	q.key = fmt.Sprint("q", t.lastKey)
	t.unanswered = append(t.unanswered, q)
}

// addReady adds the requests that are ready at the same time.
func (t *pendingCall) addReady() {
	for {
		select {
		case q := <-t.questions:
			t.addQuestion(q)
		default:
			return
		}
	}
}

// requests returns inputRequests in the form of the protocol.
func (a inputRequired) requests() json.RawMessage {
	requests := object{}
	for _, q := range a.questions {
		requests[q.key] = encode(object{"method": encode(q.method), "params": q.params})
	}
	return encode(requests)
}

// raw returns the input_required result.
func (a inputRequired) raw() json.RawMessage {
	return encode(object{"resultType": encode("input_required"), "inputRequests": a.requests(), "requestState": encode(a.ticket)})
}

// answer delivers the client's responses. Requests without one stay open and are sent again.
func (t *pendingCall) answer(responses json.RawMessage) {
	var given object
	_ = json.Unmarshal(responses, &given) // none then
	var left []*question
	for _, q := range t.unanswered {
		if reply, ok := given[q.key]; ok {
			q.reply <- reply
		} else {
			left = append(left, q)
		}
	}
	t.unanswered = left
}

// requestDigest returns a digest of method, principal, session, endpoint and arguments, which must be
// the same when a client resumes its call.
func requestDigest(ctx context.Context, method string, params object) []byte {
	same := object{"method": encode(method), "principal": encode(tool.Principal(ctx)), "session": encode(tool.Session(ctx)), "endpoint": encode(tool.Endpoint(ctx))}
	for _, name := range []string{"name", "uri", "arguments"} {
		if value, ok := params[name]; ok {
			same[name] = value
		}
	}
	sum := sha256.Sum256(encode(same))
	return sum[:]
}

// execution returns the ID of the program that waits for a response, "" for none.
func (t *pendingCall) execution() string {
	for _, q := range t.unanswered {
		if q.execution != "" {
			return q.execution
		}
	}
	return ""
}
