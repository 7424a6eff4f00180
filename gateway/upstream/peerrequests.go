package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/deferred"
	"sallyport/internal/tool"
)

// maxPeerRequests is how many requests an upstream may send during one call.
const maxPeerRequests = 64

var (
	errNoCall          = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "unexpected request: it belongs to no call in flight"}
	errAmbiguousCall   = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "ambiguous request: several calls are in flight; calls are serialized from now on, try again"}
	errTooManyRequests = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "too many requests during one call"}
)

// forwardRequest forwards a request of the upstream to the peer of its call: owner, if
// the connection tells, the call of the task that it names, or else the only call in flight.
func (w *wire) forwardRequest(req *jsonrpc.Request, owner *exchange) {
	var err error
	if id := deferred.RelatedTask(req.Params); owner == nil && id != "" {
		owner = w.exchangeOf(id)
	}
	if owner == nil {
		w.serializer.Serialize()
		owner, err = w.onlyExchange()
	}
	if err == nil {
		err = owner.ask(w, req)
	}
	if err != nil {
		w.background(func(ctx context.Context) { w.reply(ctx, req.ID, nil, err) })
	}
}

// exchangeOf returns the exchange of the call that became a task, nil for none.
func (w *wire) exchangeOf(task string) *exchange {
	for _, e := range (progress{w}).inFlight() {
		if e.taskID.Load() == task {
			return e
		}
	}
	return nil
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
		said, err := deferred.AskPeer(ctx, e.peer, req.Method, req.Params)
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
