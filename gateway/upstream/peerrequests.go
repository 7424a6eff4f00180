package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/internal/tool"
)

// maxPeerRequests is how many requests an upstream may send during one call.
const maxPeerRequests = 64

var (
	errNoCall          = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "unexpected request: it belongs to no call in flight"}
	errAmbiguousCall   = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "ambiguous request: several calls are in flight; calls are serialized from now on, try again"}
	errTooManyRequests = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "too many requests during one call"}
)

// isPeerRequest reports whether a method of an upstream's request is for the peer of a call.
func isPeerRequest(method string) bool {
	switch method {
	case "elicitation/create", "sampling/createMessage", "roots/list":
		return true
	}
	return false
}

// askPeer sends a request to the peer and checks that the result is a JSON object.
func askPeer(ctx context.Context, peer tool.Peer, method string, params json.RawMessage) (json.RawMessage, error) {
	said, err := peer.Ask(ctx, method, params)
	if err == nil && (!isObject(said) || !json.Valid(said)) {
		err = errors.New("the answer must be a JSON object")
	}
	return said, err
}

// serializer admits calls that have a peer. They are concurrent until the upstream sends a
// request over a connection that does not tell for which call; from then on they run
// one at a time, so that the request is unambiguous. It is safe for concurrent use.
type serializer struct {
	mu     sync.Mutex
	serial bool
	active int
	freed  chan struct{} // closed when a call leaves; nil unless another waits
}

func (l *serializer) enter(ctx context.Context) error {
	for {
		l.mu.Lock()
		if !l.serial || l.active == 0 {
			l.active++
			l.mu.Unlock()
			return nil
		}
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *serializer) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

// serialize makes calls run one at a time from now on.
func (l *serializer) serialize() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial = true
}

// forwardRequest forwards a request of the upstream to the peer of its call: owner, if
// the connection tells, or else the only call in flight.
func (w *wire) forwardRequest(req *jsonrpc.Request, owner *exchange) {
	var err error
	if owner == nil {
		w.serializer.serialize()
		owner, err = w.onlyExchange()
	}
	if err == nil {
		err = owner.ask(w, req)
	}
	if err != nil {
		w.background(func(ctx context.Context) { w.reply(ctx, req.ID, nil, err) })
	}
}

func (w *wire) onlyExchange() (*exchange, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch len(w.exchanges) {
	case 0:
		return nil, errNoCall
	case 1:
		for _, e := range w.exchanges {
			return e, nil
		}
	}
	return nil, errAmbiguousCall
}

// ask sends the request to the peer in a goroutine, until the call or the wire ends, or
// the upstream cancels the request.
func (e *exchange) ask(w *wire, req *jsonrpc.Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch e.requestCount++; {
	case e.closed:
		return errNoCall
	case e.requestCount > maxPeerRequests:
		return errTooManyRequests
	}
	ctx, stop := e.begin()
	e.cancels[req.ID] = stop
	e.requests.Add(1)
	started := w.background(func(life context.Context) {
		defer e.requests.Done()
		defer stop()
		defer context.AfterFunc(life, stop)()
		said, err := askPeer(ctx, e.peer, req.Method, req.Params)
		w.reply(life, req.ID, said, peerError(err))
		e.forget(req.ID)
	})
	if !started {
		stop()
		e.requests.Done()
	}
	return nil
}

func (e *exchange) forget(id jsonrpc.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.cancels, id)
}

// cancelPeerRequest cancels a request to a peer that the upstream has canceled.
func (w *wire) cancelPeerRequest(params json.RawMessage) {
	id, ok := parseID(member(params, "requestId"))
	if !ok || !id.IsValid() {
		return
	}
	for _, e := range (progress{w}).inFlight() {
		e.mu.Lock()
		if stop := e.cancels[id]; stop != nil {
			stop()
		}
		e.mu.Unlock()
	}
}

// peerError is the error response to the upstream when a peer failed: a JSON-RPC
// error unchanged, of other errors only the public message.
func peerError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	message := "no answer"
	if e, ok := errors.AsType[*tool.Error](err); ok {
		message = e.Message
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message}
}

// reply answers a request of the upstream.
func (w *wire) reply(ctx context.Context, id jsonrpc.ID, result json.RawMessage, err error) {
	resp := &jsonrpc.Response{ID: id, Result: result}
	if err != nil {
		resp.Result, resp.Error = nil, err
	}
	w.writeBestEffort(ctx, resp)
	w.owedReplies.Add(-1)
}
