package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/deferred"
)

// setTask decides whether a call of a tool with that definition may become a task that is waited for, and requests one if it must.
func (l *link) setTask(r *request, definition json.RawMessage) {
	if l.meta != nil {
		r.task = l.tasks && !r.call.KeepsTasks
		return
	}
	if r.task = l.tasks && deferred.Required(definition); r.task {
		r.set("task", deferred.Request(l.settings.Timeout))
	}
}

// waitTask waits for the result of a call that became a task. e is nil without a peer.
func (l *link) waitTask(ctx context.Context, r *request, e *exchange, t *deferred.Task) (json.RawMessage, error) {
	w := &deferred.Waiter{Modern: l.meta != nil, Peer: r.call.Peer, Started: r.call.OnTask, Abandon: l.cancelTask}
	w.Request = func(ctx context.Context, method string, input json.RawMessage) (json.RawMessage, error) {
		return l.requestTask(ctx, e, method, t.ID, input)
	}
	changed, stop := l.watchTask(ctx, t.ID)
	defer stop()
	w.Changed = changed
	if e != nil {
		w.Status = e.status
		e.taskID.Store(t.ID)
	}
	return w.Wait(ctx, t)
}

// watchTask subscribes to the status of a task, until stop is called. Upstreams need not send it.
func (l *link) watchTask(ctx context.Context, id string) (changed <-chan struct{}, stop func()) {
	changed, forget := l.wire.tasks.Watch(id)
	ctx, cancel := context.WithCancel(ctx)
	if l.meta != nil {
		l.wire.background(func(context.Context) { _, _ = l.wire.stream(ctx, methodListen, deferred.ListenParams(id, l.meta)) })
	}
	return changed, func() { cancel(); forget() }
}

// requestTask sends a request about a task. What arrives in its response belongs to the exchange of the call.
func (l *link) requestTask(ctx context.Context, e *exchange, method, task string, input json.RawMessage) (json.RawMessage, error) {
	data, err := marshal(struct {
		Task  string          `json:"taskId"`
		Input json.RawMessage `json:"inputResponses,omitempty"`
		Meta  json.RawMessage `json:"_meta,omitempty"`
	}{task, input, l.peerMeta})
	if err != nil {
		return nil, err
	}
	id, answer := l.wire.expect()
	ctx = context.WithValue(ctx, exchangeKey{}, &httpCall{l.wire, e, numericID(id)})
	if l.meta != nil {
		ctx = context.WithValue(ctx, headersKey{}, map[string]string{nameHeader: task})
	}
	raw, err := l.wire.await(ctx, answer, &jsonrpc.Request{ID: numericID(id), Method: method, Params: data})
	switch answered := rpcError(err); {
	case answered != nil && httpStatus(err) == 0:
		return nil, &deferred.Refusal{Text: answered.Message, Err: err}
	case err != nil && notBegun(err): // the call has
		return nil, errors.New(l.wire.redactor.describe(err))
	}
	return raw, err
}

// cancelTask cancels a task in the background.
func (l *link) cancelTask(id string) {
	if l.meta == nil && member(l.capabilities["tasks"], "cancel") == nil {
		return
	}
	l.wire.background(func(ctx context.Context) {
		limited, stop := context.WithTimeout(ctx, cancelTimeout)
		defer stop()
		if _, err := l.requestTask(limited, nil, "tasks/cancel", id, nil); err != nil {
			l.log.Debug("cancel task", "reason", l.wire.redactor.describe(err))
		}
	})
}

// status forwards a message about the status of the task as progress, unless the upstream reports progress itself.
func (e *exchange) status(message string) {
	e.mu.Lock()
	e.steps++
	step, reported := e.steps, e.reported
	e.mu.Unlock()
	if text, err := marshal(message); err == nil && message != "" && !reported {
		e.progress(map[string]json.RawMessage{"progress": strconv.AppendInt(nil, int64(step), 10), "message": text})
	}
}

// lasts reports whether messages belong to the call after the response to its request. e may be nil.
func (e *exchange) lasts() bool { return e != nil && e.task }
