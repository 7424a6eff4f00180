package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver/outbox"
	"sallyport/gateway/toolcall"
	"sallyport/internal/jsonedit"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// The requests and notifications that an upstream may send to a client during a call.
const (
	methodElicit     = "elicitation/create"
	methodSample     = "sampling/createMessage"
	methodRoots      = "roots/list"
	methodProgress   = "notifications/progress"
	methodLogMessage = "notifications/message"
	methodElicited   = "notifications/elicitation/complete"
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
	// showsForms reports that the client shows forms, as approvals need; some clients only open URLs.
	showsForms bool
	// opensURLs reports that the client opens URLs (elicitation in mode url).
	opensURLs bool
	// answers holds the methods that the client declared to support.
	answers map[string]bool
	out     *outbox.Queue
	// send sends a notification in the stream of the request.
	send func(method string, params json.RawMessage)
	// withRequest derives from ctx a context for a message on the stream of the request, which
	// the SDK finds in the context. It also ends with the request.
	withRequest func(ctx context.Context) (context.Context, context.CancelFunc)
}

func newClient(ctx context.Context, session *mcp.ServerSession, params object, req mcp.Request) *client {
	c := &client{session: session, modern: isModernRequest(req), answers: map[string]bool{}}
	c.withRequest = func(other context.Context) (context.Context, context.CancelFunc) {
		both, cancel := context.WithCancelCause(ctx)
		stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
		return both, func() { stop(); cancel(nil) }
	}
	var meta object
	_ = json.Unmarshal(params["_meta"], &meta) // empty without _meta
	c.token = meta["progressToken"]
	if c.modern {
		c.level = decodeString(meta[mcp.MetaKeyLogLevel]) //nolint:staticcheck // deprecated, and still to be passed on
	}
	c.setCapabilities(capabilitiesIn(req))
	c.out = &outbox.Queue{}
	c.send = func(method string, params json.RawMessage) {
		_ = c.sendNow(ctx, method, params) // if its stream is closed, the call is canceled
	}
	return c
}

func (c *client) setCapabilities(raw json.RawMessage) {
	var has object
	_ = json.Unmarshal(raw, &has)
	for method, name := range map[string]string{methodElicit: "elicitation", methodSample: "sampling", methodRoots: "roots"} {
		value, ok := has[name]
		c.answers[method] = ok && string(value) != "null"
	}
	var modes object
	_ = json.Unmarshal(has["elicitation"], &modes) // none then
	_, form := modes["form"]
	_, url := modes["url"]
	c.opensURLs = c.answers[methodElicit] && url
	c.showsForms = c.answers[methodElicit] && (form || !url)
}

// checkAnswers returns an error if the client did not declare support for a request: for its method, for the form of an
// approval, or for opening a URL.
func (c *client) checkAnswers(ctx context.Context, method string, params json.RawMessage) error {
	if c.answers[method] && (c.showsForms || toolcall.ApprovalID(ctx) == "") && (c.opensURLs || modeOf(method, params) != "url") {
		return nil
	}
	return fmt.Errorf("%w: %w", tool.ErrCannotAsk, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("the client does not support %.40s", method)})
}

// modeOf returns the mode of an elicitation, "" for another method.
func modeOf(method string, params json.RawMessage) string {
	if method != methodElicit {
		return ""
	}
	var question struct{ Mode string }
	_ = json.Unmarshal(params, &question)
	return cmp.Or(question.Mode, "form")
}

// Notify implements [tool.Peer].
func (c *client) Notify(method string, params json.RawMessage) {
	switch method {
	case methodProgress:
		if c.token == nil {
			return
		}
		edited, err := jsonedit.Edit(params, object{"progressToken": c.token})
		if err != nil {
			return
		}
		params = edited
	case methodLogMessage, methodElicited:
	default:
		return
	}
	c.out.Put(func() { c.send(method, params) })
}

// sendNow sends a notification on the stream of the request.
func (c *client) sendNow(ctx context.Context, method string, params json.RawMessage) error {
	ctx = withParams(ctx, params)
	switch method {
	case methodProgress:
		return c.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{})
	case methodElicited:
		return c.session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: "-"})
	default:
		return sendLog(ctx, c.session, params)
	}
}

// sendLog sends a log message, if the client requested its level.
func sendLog(ctx context.Context, session *mcp.ServerSession, params json.RawMessage) error {
	var message mcp.LoggingMessageParams //nolint:staticcheck // deprecated, and still to be passed on
	_ = json.Unmarshal(params, &struct {
		Level *mcp.LoggingLevel `json:"level"` //nolint:staticcheck // as above
	}{&message.Level})
	return session.Log(withParams(ctx, params), &message) //nolint:staticcheck // as above
}

// Ask implements [tool.Peer]: it asks a client of an older revision over its
// session, in the stream of the request.
func (c *client) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := c.checkAnswers(ctx, method, params); err != nil {
		return nil, err
	}
	ctx, cancel := c.withRequest(ctx)
	defer cancel()
	c.out.Flush() // earlier notifications are sent before the request
	result, meta, err := c.ask(withParams(ctx, orEmptyObject(params)), method, params)
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
	case methodElicit:
		result, err := c.session.Elicit(ctx, &mcp.ElicitParams{Mode: modeOf(method, params)})
		if err != nil {
			return nil, nil, err
		}
		return result, result.Meta, nil
	case methodSample:
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

func orEmptyObject(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return json.RawMessage("{}")
	}
	return params
}

// detach returns a context that ends with ctx and has its caller and trace, but none of its
// other values. The SDK keeps the state of a request in its context, such as the protocol
// revision, and its clients, which connect to the upstreams, would use that state for
// their own requests.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(telemetry.TraceContextOf(ctx).In(tool.Detach(ctx)))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return inner, func() {
		stop()
		cancel(nil)
	}
}
