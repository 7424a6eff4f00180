package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Gateway is what direct mode needs of the gateway.
type Gateway interface {
	// Await waits for one upstream, or for "" until most have been tried.
	Await(ctx context.Context, upstream string)
	Offers() []catalog.Offered
	Watch(f func()) (stop func())
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	// AlwaysDenied reports whether policy refuses all that the caller may call of a tool or a method.
	AlwaysDenied(ctx context.Context, id tool.ID) bool
}

// DirectOptions configure direct mode; nil means all defaults.
type DirectOptions struct {
	// Version is ours; "" is "dev".
	Version string
	// Logger gets what an operator should know; nil discards.
	Logger *slog.Logger
	// Protocol gets what happens in the protocol; nil discards.
	Protocol *slog.Logger
	// WireNames shows tools and prompts by their own names, without that of
	// their upstream.
	WireNames bool
	// StateKey signs what clients are handed for calls that wait; nil is one that ends with the process.
	StateKey []byte
	// Notices brings what upstreams say outside of calls; nil is nothing.
	Notices *Notices
	// Telemetry measures requests and keeps traces of them; nil does not.
	Telemetry *telemetry.Telemetry
}

// Direct is the face that shows the upstreams' own tools, resources and
// prompts, and passes calls, results and questions on as they are. What it
// knows of the SDK's server is little: the server speaks the protocol, and
// every request about a tool, a resource or a prompt is answered here.
type Direct struct {
	verbs  Gateway
	opts   DirectOptions
	log    *slog.Logger
	server *mcp.Server
	roster atomic.Pointer[roster]
	talks  *talks
	watch  subscriptions

	loudness loudness

	offers  atomic.Int64  // counts the changes of what is offered
	fresh   sync.Mutex    // held while a roster is made
	shown   int64         // the changes that the roster has; with fresh
	changed chan struct{} // wakes follow; holds one
	notices outbox
	work    sync.WaitGroup
	close   func()

	// promised is set when a client got capabilities of upstreams that were not known yet.
	promised atomic.Bool
}

// NewDirect returns direct mode on a gateway. Close it.
func NewDirect(verbs Gateway, opts *DirectOptions) *Direct {
	if opts == nil {
		opts = &DirectOptions{}
	}
	d := &Direct{verbs: verbs, opts: *opts, log: opts.Logger, talks: newTalks(opts.StateKey), changed: make(chan struct{}, 1)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.opts.Version == "" {
		d.opts.Version = "dev"
	}
	d.server = mcp.NewServer(&mcp.Implementation{Name: "sallyport", Title: "Sallyport", Version: d.opts.Version}, &mcp.ServerOptions{
		Logger: opts.Protocol, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		SubscribeHandler: d.subscribe, UnsubscribeHandler: d.unsubscribe,
	})
	d.server.AddReceivingMiddleware(d.receive)
	d.server.AddReceivingMiddleware(withClient)
	d.server.AddReceivingMiddleware(traced(d.opts.Telemetry))
	d.server.AddSendingMiddleware(sendRaw)
	d.roster.Store(newRoster(nil, true, d.log))
	ended := make(chan struct{})
	stop := verbs.Watch(func() {
		d.offers.Add(1)
		select {
		case d.changed <- struct{}{}:
		default:
		}
	})
	d.offers.Add(1)
	d.refresh()
	d.work.Go(func() { d.follow(ended) })
	unhear := opts.Notices.listen(d.notice)
	d.close = sync.OnceFunc(func() {
		stop()
		unhear()
		close(ended)
		d.talks.close()
		d.work.Wait()
		d.notices.flush()
	})
	return d
}

// Close ends the calls that wait for an answer of their client, and waits. It is idempotent.
func (d *Direct) Close() { d.close() }

// Connect serves one client on a transport.
func (d *Direct) Connect(ctx context.Context, transport mcp.Transport) (*mcp.ServerSession, error) {
	return d.server.Connect(ctx, tapped{transport}, nil)
}

// ServeStdio speaks MCP on stdin and stdout until the client closes stdin or ctx ends.
func (d *Direct) ServeStdio(ctx context.Context) error {
	if err := d.server.Run(ctx, tapped{stdio()}); ctx.Err() == nil {
		return err
	}
	return nil // told to end, it ended
}

// follow makes a new roster after each change, until ended is closed.
func (d *Direct) follow(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-d.changed:
			d.refresh()
		}
	}
}

// Names of what is registered with the SDK's server so that it declares a
// family of methods, and tells clients when a list has changed.
const (
	signName = "sallyport"
	signURI  = "sallyport://changed"
)

// refresh takes over what the upstreams offer now. When it returns, the roster
// has every change that was sent before. Only what changed is sent.
func (d *Direct) refresh() {
	d.fresh.Lock()
	defer d.fresh.Unlock()
	now := d.offers.Load()
	if now == d.shown {
		return
	}
	d.shown = now
	old, next := d.roster.Load(), newRoster(d.verbs.Offers(), !d.opts.WireNames, d.log)
	d.roster.Store(next)
	if !same(old.lists["tools/list"], next.lists["tools/list"]) {
		d.registerTools(old, next)
	}
	if had, has := old.has(hasPrompts), next.has(hasPrompts); has && (!had || !same(old.lists[tool.ListPrompts], next.lists[tool.ListPrompts])) {
		d.server.AddPrompt(&mcp.Prompt{Name: signName}, nil)
	} else if had && !has {
		d.server.RemovePrompts(signName)
	}
	unchanged := same(old.lists[tool.ListResources], next.lists[tool.ListResources]) && same(old.lists[tool.ListTemplates], next.lists[tool.ListTemplates])
	if had, has := old.has(hasResources), next.has(hasResources); has && (!had || !unchanged) {
		d.server.AddResource(&mcp.Resource{URI: signURI, Name: signName}, nil)
	} else if had && !has {
		d.server.RemoveResources(signURI)
	}
}

// registerTools registers with the server the tools with arguments that it compares
// with HTTP headers, and of the change.
func (d *Direct) registerTools(old, next *roster) {
	var gone []string
	for _, e := range old.lists["tools/list"] {
		if e.headers {
			gone = append(gone, e.key)
		}
	}
	d.server.RemoveTools(gone...)
	for _, e := range next.lists["tools/list"] {
		if e.headers {
			d.server.AddTool(&mcp.Tool{Name: e.key, InputSchema: headerSchema(e.raw)}, nil)
		}
	}
	d.server.AddTool(&mcp.Tool{Name: signName, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
}

// headerSchema is as much of a tool's schema as says which headers it wants;
// the SDK would not take every schema.
func headerSchema(raw json.RawMessage) json.RawMessage {
	var t struct {
		Input struct {
			Properties json.RawMessage `json:"properties"`
		} `json:"inputSchema"`
	}
	if json.Unmarshal(raw, &t) != nil || len(t.Input.Properties) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return encode(object{"type": encode("object"), "properties": t.Input.Properties})
}

func same(a, b []entry) bool {
	return slices.EqualFunc(a, b, func(a, b entry) bool { return a.key == b.key && string(a.raw) == string(b.raw) })
}

// receive answers what is about tools, resources and prompts, and leaves the
// rest of the protocol to the SDK.
func (d *Direct) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r, need := d.roster.Load(), family(method)
		switch {
		case method == "initialize" || method == "server/discover":
			r = d.current() // a handshake waits for no upstream
			if r.unknown {
				d.promised.Store(true)
			}
		case isAboutAll(method) || need != nil && !r.has(need):
			r = d.settled(ctx, "")
		}
		if need != nil && !r.has(need) && !d.promised.Load() {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no upstream has " + method}
		}
		switch method {
		case "tools/list", tool.ListPrompts, tool.ListResources, tool.ListTemplates:
			return d.list(ctx, r, method, req)
		case "tools/call", tool.GetPrompt, tool.ReadResource, tool.Complete:
			return d.forward(ctx, r, method, req)
		case tool.SetLogLevel:
			d.setLevel(ctx, req)
		case "subscriptions/listen":
			d.narrow(r, req)
		}
		result, err := next(ctx, method, req)
		declare(r, result)
		return result, err
	}
}

// isAboutAll says whether the answer to a method depends on all upstreams.
func isAboutAll(method string) bool {
	switch method {
	case "subscriptions/listen", "tools/list", tool.ListPrompts, tool.ListResources, tool.ListTemplates:
		return true
	}
	return false
}

// settled returns the roster once an upstream has been tried, or for "" most of them, or the time for that is over.
func (d *Direct) settled(ctx context.Context, upstream string) *roster {
	ctx, cancel := bare(ctx)
	defer cancel()
	d.verbs.Await(ctx, upstream)
	return d.current()
}

// current is the roster of now.
func (d *Direct) current() *roster {
	d.refresh()
	return d.roster.Load()
}

// family returns which capability a method needs, nil for none.
func family(method string) func(ability) bool {
	switch method {
	case tool.ListPrompts, tool.GetPrompt:
		return hasPrompts
	case tool.ListResources, tool.ListTemplates, tool.ReadResource:
		return hasResources
	case tool.Subscribe, tool.Unsubscribe:
		return subscribable
	case tool.Complete:
		return hasCompletions
	case tool.SetLogLevel:
		return hasLogging
	}
	return nil
}

// declare adds to the answer of a handshake what the SDK cannot know.
func declare(r *roster, result mcp.Result) {
	var can *mcp.ServerCapabilities
	switch result := result.(type) {
	case *mcp.InitializeResult:
		can, result.Instructions = result.Capabilities, r.instructions
	case *mcp.DiscoverResult:
		can, result.Instructions = result.Capabilities, r.instructions
	}
	if can == nil {
		return
	}
	if r.has(hasCompletions) {
		can.Completions = &mcp.CompletionCapabilities{}
	}
	if r.has(hasLogging) {
		can.Logging = &mcp.LoggingCapabilities{} //nolint:staticcheck // deprecated, and still to be passed on
	}
	if can.Resources != nil {
		can.Resources.Subscribe = r.has(subscribable)
	}
}

// list answers a list method from the roster, without what is always refused to the caller.
func (d *Direct) list(ctx context.Context, r *roster, method string, req mcp.Request) (mcp.Result, error) {
	var params struct {
		Cursor []byte `json:"cursor"` // base64 of a key
	}
	if json.Unmarshal(paramsOf(req), &params) != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this cursor is none of ours"}
	}
	entries, next := r.page(method, string(params.Cursor))
	raws := make([]json.RawMessage, 0, len(entries))
	for _, e := range entries {
		if !d.verbs.AlwaysDenied(ctx, e.id) {
			raws = append(raws, e.raw)
		}
	}
	member := map[string]string{"tools/list": "tools", tool.ListPrompts: "prompts", tool.ListResources: "resources", tool.ListTemplates: "resourceTemplates"}[method]
	result := object{member: encode(raws)}
	if next != "" {
		result["nextCursor"] = encode([]byte(next))
	}
	if isModernRequest(req) {
		result["_meta"] = encode(map[string]any{mcp.MetaKeyServerInfo: map[string]string{"name": "sallyport", "title": "Sallyport", "version": d.opts.Version}})
		maps.Copy(result, modernMembers(true))
	}
	return &rawResult{raw: encode(result)}, nil
}

// modernMembers are those that revision 2026-07-28 wants in a result. Nothing
// may be shared between users: what a list holds can depend on who asks.
func modernMembers(cacheable bool) object {
	members := object{"resultType": encode("complete")}
	if cacheable {
		members["ttlMs"], members["cacheScope"] = json.RawMessage("0"), encode("private")
	}
	return members
}

// paramsOf returns the params of a request as they were sent.
func paramsOf(req mcp.Request) json.RawMessage {
	params := req.GetParams()
	if params == nil {
		return json.RawMessage("{}")
	}
	if raw, ok := rawOf(metaOf(params)); ok {
		return raw
	}
	return encode(params)
}

// metaOf reads a _meta; the params may be a nil pointer, as those of a list without any.
func metaOf(params mcp.Params) map[string]any {
	defer func() { _ = recover() }()
	return params.GetMeta()
}

// isModernRequest says whether a request stands alone.
func isModernRequest(req mcp.Request) bool {
	if params := req.GetParams(); params != nil {
		version, _ := metaOf(params)[mcp.MetaKeyProtocolVersion].(string)
		return version >= modern
	}
	return false
}
