package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Notices passes notifications of upstreams outside of calls to direct mode, which
// is created after the gateway has been given its callback. The zero value is ready
// to use. It is safe for concurrent use.
type Notices struct {
	mu     sync.Mutex
	handle func(id, method string, params json.RawMessage)
}

// Notice is the callback for the gateway's option OnNotice.
func (n *Notices) Notice(id, method string, params json.RawMessage) {
	n.mu.Lock()
	hear := n.handle
	n.mu.Unlock()
	if hear != nil {
		hear(id, method, params)
	}
}

func (n *Notices) listen(hear func(id, method string, params json.RawMessage)) (stop func()) {
	if n == nil {
		return func() {}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handle = hear
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.handle = nil
	}
}

// notice forwards a notification of an upstream outside of a call. It does not block.
func (d *Direct) notice(id, method string, params json.RawMessage) {
	switch method {
	case "notifications/resources/updated":
		var about struct{ URI string }
		if json.Unmarshal(params, &about) == nil {
			d.notices.put(func() { d.notifyUpdated(context.Background(), id, about.URI) })
		}
	case methodLogMessage:
		d.notices.put(func() {
			for session := range d.server.Sessions() {
				_ = sendLog(context.Background(), session, params) // it may have disconnected
			}
		})
	}
}

// notifyUpdated notifies the subscribers of a resource. It removes those that disconnected
// without unsubscribing, and unsubscribes from the upstream when none is left.
func (d *Direct) notifyUpdated(ctx context.Context, upstream, wire string) {
	live := slices.Collect(d.server.Sessions())
	for _, shown := range d.subscriptions.prune(upstream, wire, live) {
		_ = d.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: shown})
	}
	if !d.subscriptions.hasSubscribers(upstream, wire) {
		_ = d.sendSubscription(ctx, tool.Unsubscribe, upstream, wire) // tell logs the error
	}
}

// sendSubscription subscribes to a resource of an upstream, or unsubscribes, by method.
func (d *Direct) sendSubscription(ctx context.Context, method, upstream, wire string) error {
	_, err := d.call(ctx, tool.Call{Tool: tool.ID{Upstream: upstream, Name: method}, Args: encode(object{"uri": encode(wire)})})
	if err != nil {
		d.log.DebugContext(ctx, method, "upstream", upstream, "reason", sanitize.Line(err.Error(), 200))
	}
	return err
}

func (d *Direct) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	upstream, wire, ok := d.roster.Load().resourceUpstream(req.Params.URI)
	if !ok {
		return unknownResource(encode(req.Params.URI))
	}
	if !hasSubscribe(d.roster.Load().capabilitiesOf(upstream)) {
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the upstream does not support subscriptions"}
	}
	if d.subscriptions.add(upstream, wire, req.Params.URI, req.Session) {
		_, err := toResponse(ctx, tool.Subscribe, false, nil, d.sendSubscription(ctx, tool.Subscribe, upstream, wire))
		if err != nil {
			d.subscriptions.remove(upstream, wire, req.Session)
			return err
		}
	}
	return nil
}

func (d *Direct) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	upstream, wire, ok := d.roster.Load().resourceUpstream(req.Params.URI)
	if ok && d.subscriptions.remove(upstream, wire, req.Session) {
		_ = d.sendSubscription(context.WithoutCancel(ctx), tool.Unsubscribe, upstream, wire) // the client does not wait for it
	}
	return nil
}

// filterSubscriptions removes the resource subscriptions that no upstream supports from a modern client's request.
func (d *Direct) filterSubscriptions(r *roster, req mcp.Request) {
	params, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || params.Notifications == nil {
		return
	}
	params.Notifications.ResourceSubscriptions = slices.DeleteFunc(params.Notifications.ResourceSubscriptions, func(uri string) bool {
		upstream, _, ok := r.resourceUpstream(uri)
		return !ok || !hasSubscribe(r.capabilitiesOf(upstream))
	})
}

// subscriptions records which sessions subscribed to which resource. It is safe for concurrent use.
type subscriptions struct {
	mu       sync.Mutex
	sessions map[[2]string]map[*mcp.ServerSession]string // key: upstream and its URI; value: the URI that the client sees
}

// add reports whether it is the first subscription, for which the upstream must be subscribed to.
func (s *subscriptions) add(upstream, wire, shown string, session *mcp.ServerSession) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[[2]string]map[*mcp.ServerSession]string{}
	}
	key := [2]string{upstream, wire}
	if s.sessions[key] == nil {
		s.sessions[key] = map[*mcp.ServerSession]string{}
	}
	s.sessions[key][session] = shown
	return len(s.sessions[key]) == 1
}

// remove reports whether it was the last subscription, after which the upstream must be unsubscribed from.
func (s *subscriptions) remove(upstream, wire string, session *mcp.ServerSession) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{upstream, wire}
	_, was := s.sessions[key][session]
	delete(s.sessions[key], session)
	if len(s.sessions[key]) > 0 {
		return false
	}
	delete(s.sessions, key)
	return was
}

// prune removes sessions that are not live, and returns the URIs of the resource that the others see.
func (s *subscriptions) prune(upstream, wire string, live []*mcp.ServerSession) (shown []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{upstream, wire}
	maps.DeleteFunc(s.sessions[key], func(session *mcp.ServerSession, _ string) bool { return !slices.Contains(live, session) })
	shown = slices.Compact(slices.Sorted(maps.Values(s.sessions[key])))
	if len(shown) == 0 {
		delete(s.sessions, key)
	}
	return shown
}

func (s *subscriptions) hasSubscribers(upstream, wire string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions[[2]string{upstream, wire}]) > 0
}
