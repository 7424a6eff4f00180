package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/toolcall"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// The requests and notifications that an upstream may send to a client during a call.
const (
	askElicit   = "elicitation/create"
	askSample   = "sampling/createMessage"
	askRoots    = "roots/list"
	sayProgress = "notifications/progress"
	sayMessage  = "notifications/message"
	sayElicited = "notifications/elicitation/complete"
)

// client is the sender of one request, while the request lasts.
type client struct {
	session *mcp.ServerSession
	modern  bool
	// token is the client's progress token; nil if it requested no progress.
	token json.RawMessage
	// level is the log level that a modern client requested, "" for no log.
	level string
	// typed reports that responses are encoded from the SDK's types, as its messages are not annotated with their bytes.
	typed bool
	// form reports that the client shows forms, as approvals need; some clients only open URLs.
	form bool
	// can holds the methods that the client declared to support.
	can map[string]bool
	out *outbox
	// send sends a notification in the stream of the request.
	send func(method string, params json.RawMessage)
	// within derives from ctx a context for a message on the stream of the request, which
	// the SDK finds in the context. It also ends with the request.
	within func(ctx context.Context) (context.Context, context.CancelFunc)
}

func newClient(ctx context.Context, session *mcp.ServerSession, params object, req mcp.Request) *client {
	c := &client{session: session, modern: isModernRequest(req), can: map[string]bool{}}
	c.within = func(other context.Context) (context.Context, context.CancelFunc) {
		both, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
		return both, func() { stop(); cancel(nil) }
	}
	var meta object
	_ = json.Unmarshal(params["_meta"], &meta) // empty without _meta
	c.token = meta["progressToken"]
	if c.modern {
		c.level = text1(meta[mcp.MetaKeyLogLevel]) //nolint:staticcheck // deprecated, and still to be passed on
		c.abilities(meta[mcp.MetaKeyClientCapabilities])
	} else if init := session.InitializeParams(); init != nil && init.Capabilities != nil {
		c.abilities(encode(init.Capabilities))
	}
	c.out = &outbox{}
	c.send = func(method string, params json.RawMessage) {
		_ = c.say(ctx, method, params) // if its stream is closed, the call is canceled
	}
	return c
}

func (c *client) abilities(raw json.RawMessage) {
	var has object
	_ = json.Unmarshal(raw, &has)
	for method, name := range map[string]string{askElicit: "elicitation", askSample: "sampling", askRoots: "roots"} {
		value, ok := has[name]
		c.can[method] = ok && string(value) != "null"
	}
	var modes object
	_ = json.Unmarshal(has["elicitation"], &modes) // none then
	_, form := modes["form"]
	_, url := modes["url"]
	c.form = c.can[askElicit] && (form || !url)
}

// refuse returns an error if the client did not declare support for a method, or for the form of an approval.
func (c *client) refuse(ctx context.Context, method string) error {
	if c.can[method] && (c.form || toolcall.ApprovalID(ctx) == "") {
		return nil
	}
	return fmt.Errorf("%w: %w", tool.ErrCannotAsk, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("the client does not support %.40s", method)})
}

// Notify implements [tool.Peer].
func (c *client) Notify(method string, params json.RawMessage) {
	switch method {
	case sayProgress:
		if c.token == nil {
			return
		}
		edited, err := edit(params, object{"progressToken": c.token})
		if err != nil {
			return
		}
		params = edited
	case sayMessage, sayElicited:
	default:
		return
	}
	c.out.put(func() { c.send(method, params) })
}

// say sends a notification on the stream of the request.
func (c *client) say(ctx context.Context, method string, params json.RawMessage) error {
	ctx = outgoing(ctx, params)
	switch method {
	case sayProgress:
		return c.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{})
	case sayElicited:
		return c.session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: "-"})
	default:
		return log(ctx, c.session, params)
	}
}

// log sends a log message, if the client requested its level.
func log(ctx context.Context, session *mcp.ServerSession, params json.RawMessage) error {
	var message mcp.LoggingMessageParams //nolint:staticcheck // deprecated, and still to be passed on
	_ = json.Unmarshal(params, &struct {
		Level *mcp.LoggingLevel `json:"level"` //nolint:staticcheck // as above
	}{&message.Level})
	return session.Log(outgoing(ctx, params), &message) //nolint:staticcheck // as above
}

// Ask implements [tool.Peer]: it asks a client of an older revision over its
// session, in the stream of the request.
func (c *client) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := c.refuse(ctx, method); err != nil {
		return nil, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	c.out.flush() // earlier notifications are sent before the request
	result, meta, err := c.ask(outgoing(ctx, orEmpty(params)), method, params)
	if err != nil {
		return nil, err
	}
	raw, ok := rawOf(meta)
	switch {
	case ok:
		return raw, nil
	case c.typed:
		return encode(result), nil
	}
	return nil, &tool.Error{Kind: tool.Internal, Message: "the client's result is not a JSON object"}
}

// ask sends the request by the SDK and returns the result with its _meta.
func (c *client) ask(ctx context.Context, method string, params json.RawMessage) (mcp.Result, map[string]any, error) {
	switch method {
	case askElicit:
		var question struct{ Mode string }
		_ = json.Unmarshal(params, &question)
		if question.Mode == "" {
			question.Mode = "form"
		}
		result, err := c.session.Elicit(ctx, &mcp.ElicitParams{Mode: question.Mode})
		if err != nil {
			return nil, nil, err
		}
		return result, result.Meta, nil
	case askSample:
		result, err := c.session.CreateMessageWithTools(ctx, nil) //nolint:staticcheck // deprecated, and still to be passed on
		if err != nil {
			return nil, nil, err
		}
		return result, result.Meta, nil
	default:
		result, err := c.session.ListRoots(ctx, nil) //nolint:staticcheck // as above
		if err != nil {
			return nil, nil, err
		}
		return result, result.Meta, nil
	}
}

func orEmpty(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return json.RawMessage("{}")
	}
	return params
}

// maxWaiting is how many notifications are queued for a slow client; more are dropped.
const maxWaiting = 256

// outbox runs functions in order, without blocking the callers that add them. It is safe for concurrent use.
type outbox struct {
	mu      sync.Mutex
	waiting []func()
	busy    bool
	work    sync.WaitGroup
}

func (o *outbox) put(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) >= maxWaiting {
		return
	}
	o.waiting = append(o.waiting, f)
	if !o.busy {
		o.busy = true
		o.work.Go(o.drain)
	}
}

func (o *outbox) drain() {
	for f := o.next(); f != nil; f = o.next() {
		f()
	}
}

// next removes and returns the next function, nil if the queue is empty.
func (o *outbox) next() func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		o.busy = false
		return nil
	}
	f := o.waiting[0]
	o.waiting = o.waiting[1:]
	return f
}

// flush waits until all queued functions have run.
func (o *outbox) flush() { o.work.Wait() }

// bare returns a context that ends with ctx and has its caller and trace, but none of its
// other values. The SDK keeps the state of a request in its context, such as the protocol
// revision, and its clients, which connect to the upstreams, would use that state for
// their own requests.
func bare(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(telemetry.PlaceOf(ctx).In(tool.Detached(ctx)))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return inner, func() {
		stop()
		cancel(nil)
	}
}
