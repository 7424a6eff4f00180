package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/deferred"
	"sallyport/gateway/upstream/paramheader"
	"sallyport/internal/reclaim"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// reservedMeta is the prefix of the protocol's own members of _meta.
const reservedMeta = "io.modelcontextprotocol/"

// metaLogLevel carries the log level; the SDK's own name for it is deprecated.
const metaLogLevel = reservedMeta + "logLevel"

// callOn runs one call on one link, within the time limit of a call.
func (s *Session) callOn(ctx context.Context, l *link, call tool.Call) (tool.Result, error) {
	if call.Peer != nil && l.meta == nil {
		if err := s.serializer.Enter(ctx); err != nil {
			return tool.Result{}, faults{s}.contextError(ctx)
		}
		defer s.serializer.Leave()
	}
	r, err := s.newRequest(ctx, l, call)
	if err != nil {
		return tool.Result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, s.settings.Timeout)
	defer cancel()
	begin := time.Now()
	raw, err := s.sendRounds(limited, l, r)
	if isUnacknowledged(err) || err != nil && l.lostConnection(limited, err) && s.repeatable(call.Tool) {
		raw, err = s.repeat(limited, call, err)
	}
	if e, ok := errors.AsType[*tool.Error](err); ok && ctx.Err() == nil {
		return tool.Result{}, e
	} else if err != nil {
		return tool.Result{}, faults{s}.callError(ctx, limited, call.Tool.Name, time.Since(begin), err)
	}
	result, err := s.resultOf(r, raw)
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return tool.Result{}, e
	} else if err != nil {
		return tool.Result{}, faults{s}.badAnswerError(call.Tool.Name, err)
	}
	l.served.Store(true)
	s.noteSubscription(call)
	return result, nil
}

// resultOf reads the result of a request. Programs get the parsed result, not the message, which can be large.
func (s *Session) resultOf(r *request, raw json.RawMessage) (tool.Result, error) {
	size := len(raw)
	result, err := r.read(raw)
	if err != nil || r.method != "tools/call" || r.call.Execution == "" || r.call.Rounds {
		return result, err
	}
	result.Raw = nil
	s.opts.Budget.Keep(result)
	reclaim.Copy(size)
	return result, nil
}

// request is a call before it is encoded for the wire.
type request struct {
	call   tool.Call
	method string
	wire   string // the tool's name, "" for another method
	args   json.RawMessage
	// extraParams are the members of params in addition to those of the method and _meta; nil for most calls.
	extraParams map[string]json.RawMessage
	headers     map[string]string // over HTTP: those that repeat arguments, and the trace context
	// traceparent is its trace context, "" for none; untraced hides it from the upstream.
	traceparent string
	untraced    bool
	task        bool // it may become a task
	read        func(raw json.RawMessage) (tool.Result, error)
}

// newRequest builds the request of a call, once the list of tools is up to date.
func (s *Session) newRequest(ctx context.Context, l *link, call tool.Call) (*request, error) {
	args, err := objectOf(call.Args)
	if err != nil {
		return nil, err
	}
	r := &request{call: call, method: call.Tool.Method(), args: args, read: parseResult}
	for name, value := range call.Params {
		if name != "_meta" && name != "task" { // the caller of a task is the gateway
			r.set(name, value)
		}
	}
	defer s.trace(ctx, r)
	if r.method != "tools/call" {
		return r, s.setMethod(l, r)
	}
	if err := s.awaitList(ctx, l); err != nil {
		return nil, err
	}
	s.mu.Lock()
	t, ok := s.catalog.tool(call.Tool.Name)
	s.mu.Unlock()
	if !ok {
		return nil, faults{s}.unknownToolError(call.Tool.Name, s.toolNames())
	}
	if call.BeforeSend != nil {
		if err := call.BeforeSend(t); err != nil {
			return nil, err
		}
	}
	if l.remote {
		r.read = parseRemote
	}
	r.wire = t.Wire
	l.setTask(r, t.Raw)
	if s.settings.URL != "" && l.meta != nil {
		r.headers = paramheader.Of(t.Input, args)
	}
	return r, nil
}

func (r *request) set(name string, value json.RawMessage) {
	if r.extraParams == nil {
		r.extraParams = map[string]json.RawMessage{}
	}
	r.extraParams[name] = value
}

// setMethod prepares a request of another method than tools/call. Its params are the arguments.
func (s *Session) setMethod(l *link, r *request) error {
	switch r.method {
	case tool.ReadResource:
		r.read = parseRead
	case tool.GetPrompt, tool.Complete:
		r.read = parseOther
	case tool.Subscribe, tool.Unsubscribe, tool.SetLogLevel:
		r.read = parseOther
		if l.meta != nil { // removed in this revision: the session keeps the subscription and sends nothing
			if r.method != tool.SetLogLevel && !l.declares("resources", "subscribe") {
				return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("upstream %s does not support resource subscriptions", s.settings.ID)}
			}
			r.method = ""
		}
	case tool.GetTask, tool.UpdateTask, tool.CancelTask:
		if !l.tasks || l.meta == nil {
			return &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("upstream %s has no tasks", s.settings.ID)}
		}
		r.read, r.headers = parseOther, map[string]string{nameHeader: text(member(r.args, "taskId"))}
	default:
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("upstream %s: unsupported method %s", s.settings.ID, sanitize.Line(strconv.Quote(r.method), 80))}
	}
	for name, value := range members(r.args) {
		if name != "_meta" {
			r.set(name, value)
		}
	}
	return nil
}

// params encodes the params of the request. token is the progress token of a call with a peer, 0 for none.
func (r *request) params(l *link, token int64) (json.RawMessage, error) {
	meta, err := r.meta(l, token)
	if err != nil {
		return nil, err
	}
	if r.extraParams == nil && r.wire != "" {
		return marshal(struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Meta      json.RawMessage `json:"_meta,omitempty"`
		}{r.wire, r.args, meta})
	}
	fields := make(map[string]json.RawMessage, len(r.extraParams)+3)
	maps.Copy(fields, r.extraParams)
	if r.wire != "" {
		fields["name"], err = marshal(r.wire)
		fields["arguments"] = r.args
	}
	if meta != nil {
		fields["_meta"] = meta
	}
	if err != nil {
		return nil, err
	}
	return marshal(fields)
}

// meta returns the _meta of the request: the protocol's members of the link, and the
// caller's own. Of the protocol's members, the caller's capabilities and log level
// take precedence; the others are the link's.
func (r *request) meta(l *link, token int64) (json.RawMessage, error) {
	base := l.meta
	if r.call.Peer != nil || r.call.Rounds {
		base = l.peerMeta
	}
	theirs := members(r.call.Params["_meta"])
	level := l.levelFor(token)
	if len(theirs) == 0 && level == nil && r.traceparent == "" {
		return withToken(base, token), nil
	}
	fields := map[string]json.RawMessage{}
	maps.Copy(fields, members(base))
	if level != nil {
		fields[metaLogLevel] = level
	}
	for name, value := range theirs {
		if l.passesMeta(name) && !(r.untraced && isTrace(name)) {
			fields[name] = value
		}
	}
	if l.tasks {
		deferred.DeclareIn(fields)
	}
	if r.traceparent != "" {
		fields[traceparentField] = json.RawMessage(strconv.Quote(r.traceparent))
	}
	if token != 0 {
		fields["progressToken"] = strconv.AppendInt(nil, token, 10)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return marshal(fields)
}

// passesMeta reports whether a member of a caller's _meta is forwarded to the upstream.
func (l *link) passesMeta(name string) bool {
	if name == mcp.MetaKeyClientCapabilities || name == metaLogLevel {
		return l.meta != nil
	}
	return name != "progressToken" && !strings.HasPrefix(name, reservedMeta)
}

// levelFor returns the log level for a request with that token, nil for none. From
// revision 2026-07-28 on, requests are the only way to set it.
func (l *link) levelFor(token int64) json.RawMessage {
	if token == 0 || l.meta == nil {
		return nil
	}
	return l.subscriptions.Level()
}

// withToken adds a progress token to meta, which is an object or nil; token 0 adds none.
func withToken(meta json.RawMessage, token int64) json.RawMessage {
	if token == 0 {
		return meta
	}
	out := []byte(`{`)
	if len(meta) > 2 {
		out = append(append(make([]byte, 0, len(meta)+32), meta[:len(meta)-1]...), ',')
	}
	out = append(out, `"progressToken":`...)
	return append(strconv.AppendInt(out, token, 10), '}')
}

func (s *Session) toolNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.catalog.names()
}
