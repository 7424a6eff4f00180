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
	mu       sync.Mutex
	handlers map[*Direct]func(id, method string, params json.RawMessage)
	// subscriptions and logLevel are what the upstreams were told for all servers of direct mode together.
	subscriptions subscriptions
	logLevel      maxLogLevel
}

// Notice is the callback for the gateway's option OnNotice.
func (n *Notices) Notice(id, method string, params json.RawMessage) {
	n.mu.Lock()
	all := slices.Collect(maps.Values(n.handlers))
	n.mu.Unlock()
	for _, handle := range all {
		handle(id, method, params)
	}
}

// listen passes notifications to a server of direct mode, until stop is called.
func (n *Notices) listen(d *Direct) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handlers == nil {
		n.handlers = map[*Direct]func(id, method string, params json.RawMessage){}
	}
	n.handlers[d] = d.notice
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.handlers, d)
	}
}

// notice forwards a notification of an upstream outside of a call, if the upstream has anything here. It does not block.
func (d *Direct) notice(id, method string, params json.RawMessage) {
	if !d.roster.Load().hasUpstream(id) {
		return
	}
	switch method {
	case "notifications/resources/updated":
		var about struct{ URI string }
		if json.Unmarshal(params, &about) == nil {
			d.notices.Put(func() { d.notifyUpdated(context.Background(), id, about.URI) })
		}
	case methodLogMessage:
		d.notices.Put(func() {
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
	for _, shown := range d.shared.subscriptions.prune(d, upstream, wire, live) {
		_ = d.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: shown})
	}
	if !d.shared.subscriptions.hasSubscribers(upstream, wire) {
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
	if d.shared.subscriptions.add(upstream, wire, subscriber{d, req.Params.URI}, req.Session) {
		_, err := toResponse(ctx, tool.Subscribe, false, nil, d.sendSubscription(ctx, tool.Subscribe, upstream, wire))
		if err != nil {
			d.shared.subscriptions.remove(upstream, wire, req.Session)
			return err
		}
	}
	return nil
}

func (d *Direct) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	upstream, wire, ok := d.roster.Load().resourceUpstream(req.Params.URI)
	if ok && d.shared.subscriptions.remove(upstream, wire, req.Session) {
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
	sessions map[[2]string]map[*mcp.ServerSession]subscriber // key: upstream and its URI
}

// subscriber is the server of a session that subscribed, and the URI that its client sees.
type subscriber struct {
	server *Direct
	shown  string
}

// add reports whether it is the first subscription, for which the upstream must be subscribed to.
func (s *subscriptions) add(upstream, wire string, by subscriber, session *mcp.ServerSession) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[[2]string]map[*mcp.ServerSession]subscriber{}
	}
	key := [2]string{upstream, wire}
	if s.sessions[key] == nil {
		s.sessions[key] = map[*mcp.ServerSession]subscriber{}
	}
	s.sessions[key][session] = by
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

// prune removes sessions of a server that are not live, and returns the URIs of the resource that its others see.
func (s *subscriptions) prune(server *Direct, upstream, wire string, live []*mcp.ServerSession) (shown []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{upstream, wire}
	maps.DeleteFunc(s.sessions[key], func(session *mcp.ServerSession, by subscriber) bool {
		return by.server == server && !slices.Contains(live, session)
	})
	for _, by := range s.sessions[key] {
		if by.server == server && !slices.Contains(shown, by.shown) {
			shown = append(shown, by.shown)
		}
	}
	if len(s.sessions[key]) == 0 {
		delete(s.sessions, key)
	}
	slices.Sort(shown)
	return shown
}

func (s *subscriptions) hasSubscribers(upstream, wire string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions[[2]string{upstream, wire}]) > 0
}
