package upstream

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

const methodListen = "subscriptions/listen"

// noteSubscription records the subscription or log level of a successful call.
func (s *Session) noteSubscription(call tool.Call) {
	switch call.Tool.Method() {
	case tool.Subscribe, tool.Unsubscribe:
		s.subscriptions.Put(text(member(call.Args, "uri")), call.Tool.Method() == tool.Subscribe)
	case tool.SetLogLevel:
		s.subscriptions.SetLevel(member(call.Args, "level"))
	}
}

// restoreSubscriptions restores subscriptions and log level on a server of an older revision.
func (l *link) restoreSubscriptions(ctx context.Context) {
	ask := func(method string, params any) {
		if _, err := l.request(ctx, method, params); err != nil {
			l.log.Debug("ask again", "method", method, "reason", l.wire.redactor.describe(err))
		}
	}
	if level := l.subscriptions.Level(); level != nil {
		ask(tool.SetLogLevel, map[string]json.RawMessage{"level": level})
	}
	uris, _ := l.subscriptions.Snapshot()
	for _, uri := range uris {
		ask(tool.Subscribe, map[string]string{"uri": uri})
	}
}

// listenFilter are the notifications that subscriptions/listen requests.
type listenFilter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// declares reports whether the server declared a part of a capability.
func (l *link) declares(capability, what string) bool {
	on := flag(member(l.capabilities[capability], what))
	return on != nil && *on
}

func (l *link) filter() (want listenFilter, listed parts, changed <-chan struct{}) {
	want.Tools, want.Prompts = l.declares("tools", "listChanged"), l.declares("prompts", "listChanged")
	want.Resources = l.declares("resources", "listChanged")
	for p, on := range map[parts]bool{toolPart: want.Tools, promptPart: want.Prompts, resourcePart | templatePart: want.Resources} {
		if on {
			listed |= p
		}
	}
	uris, changed := l.subscriptions.Snapshot()
	if l.declares("resources", "subscribe") {
		want.URIs = uris
	}
	return want, listed, changed
}

// listen keeps the subscriptions/listen stream of a link of revision 2026-07-28 or
// later open until ctx ends. It reopens a broken stream with exponential backoff and
// requests the lists again, since a change may have been missed.
func (l *link) listen(ctx context.Context) {
	wait := listenRetryMin / 10
	for {
		want, listed, changed := l.filter()
		begin := time.Now()
		again := l.listenOnce(ctx, want, changed)
		if ctx.Err() != nil || !again && !waitChanged(ctx, changed) {
			return
		}
		select {
		case <-changed: // the subscriptions changed, the stream is intact
			continue
		default:
		}
		if time.Since(begin) > listenRetryMax {
			wait = listenRetryMin / 10
		}
		if sleep.For(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, listenRetryMax)
		l.wire.changed(listed)
	}
}

func waitChanged(ctx context.Context, changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// listenOnce holds one stream until it breaks or the subscriptions change, and
// reports whether to retry.
func (l *link) listenOnce(ctx context.Context, want listenFilter, changed <-chan struct{}) bool {
	if !want.Tools && !want.Prompts && !want.Resources && len(want.URIs) == 0 {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	l.wire.background(func(context.Context) {
		select {
		case <-changed:
			cancel()
		case <-ended:
		}
	})
	params, err := marshal(struct {
		Notifications listenFilter    `json:"notifications"`
		Meta          json.RawMessage `json:"_meta,omitempty"`
	}{want, l.meta})
	if err != nil {
		return false
	}
	_, err = l.wire.stream(ctx, methodListen, params)
	if e := rpcError(err); e != nil && (e.Code == jsonrpc.CodeMethodNotFound || e.Code == jsonrpc.CodeInvalidParams) {
		l.log.Debug("subscribe to changes", "reason", l.wire.redactor.describe(err))
		return false
	}
	return true
}
