package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/mcpserver/outbox"
	"sallyport/gateway/mcpserver/session"
	"sallyport/gateway/mcpserver/taskid"
	"sallyport/internal/mcpapp"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Gateway is the part of the gateway that direct mode calls.
type Gateway interface {
	// Await waits until an upstream has been tried, or for "" until most upstreams have.
	Await(ctx context.Context, upstream string)
	Offers() []catalog.UpstreamOffer
	Watch(f func()) (stop func())
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	// AlwaysDenied reports whether policy denies every call of a tool or a method by the caller.
	AlwaysDenied(ctx context.Context, id tool.ID) bool
}

// DirectOptions configure direct mode; nil means all defaults.
type DirectOptions struct {
	// Version is the gateway's version; "" is "dev".
	Version string
	// Logger gets what an operator should know; nil discards.
	Logger *slog.Logger
	// Protocol gets the SDK's log of the protocol; nil discards.
	Protocol *slog.Logger
	// WireNames shows tools and prompts by their own names, without that of
	// their upstream.
	WireNames bool
	// As is the upstream as which the server presents itself, to another gateway; nil presents the gateway.
	As *tool.Server
	// Search makes mode search possible; nil disables it.
	Search Search
	// Mode returns the mode of a client whose URL names none; nil is direct.
	Mode ModeOf
	// StateKey signs the requestState of pending calls, and encrypts the IDs of tasks; nil generates a key for this process.
	StateKey []byte
	// Upstreams returns the upstreams that the caller in ctx sees; nil shows each caller all.
	Upstreams func(ctx context.Context) []catalog.Upstream
	// Notices delivers notifications of upstreams outside of calls; nil delivers none.
	Notices *Notices
	// Telemetry records metrics and traces of requests; nil disables it.
	Telemetry *telemetry.Telemetry
}

// Direct is the MCP server that exposes the upstreams' own tools, resources and
// prompts, and forwards calls, results and server requests unchanged. The SDK's
// server speaks the protocol; Direct handles every request about a tool, a
// resource or a prompt.
type Direct struct {
	gateway Gateway
	opts    DirectOptions
	log     *slog.Logger
	server  *mcp.Server
	roster  atomic.Pointer[roster]
	pending *pendingCalls
	taskIDs *taskid.Sealer
	ids     *session.IDs
	// shared is what all servers of direct mode of the gateway have in common.
	shared *Notices

	listed listed

	offerVersion  atomic.Int64  // counts the changes of the upstreams' offers
	refreshMu     sync.Mutex    // held while a roster is built
	rosterVersion int64         // the count of changes that the roster includes; guarded by the mutex above
	changed       chan struct{} // signals that the roster is out of date; capacity 1
	notices       outbox.Queue
	work          sync.WaitGroup
	close         func()

	// overdeclared is set when capabilities were declared for upstreams that were not known yet.
	overdeclared atomic.Bool
}

// NewDirect returns direct mode on a gateway. Close it.
func NewDirect(verbs Gateway, opts *DirectOptions) *Direct {
	if opts == nil {
		opts = &DirectOptions{}
	}
	d := &Direct{gateway: verbs, opts: *opts, log: opts.Logger, pending: newPendingCalls(opts.StateKey), taskIDs: taskid.New(opts.StateKey), shared: opts.Notices, ids: session.NewIDs(directSession), changed: make(chan struct{}, 1)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.shared == nil {
		d.shared = &Notices{}
	}
	if d.opts.Version == "" {
		d.opts.Version = "dev"
	}
	self := &mcp.Implementation{Name: "sallyport", Title: "Sallyport", Version: d.opts.Version}
	if as := d.opts.As; as != nil {
		self = &mcp.Implementation{Name: as.Name, Version: as.Version}
	}
	d.server = mcp.NewServer(self, &mcp.ServerOptions{
		Logger: opts.Protocol, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		SubscribeHandler: d.subscribe, UnsubscribeHandler: d.unsubscribe, GetSessionID: d.ids.Next,
	})
	acceptTasks(d.server)
	d.server.AddReceivingMiddleware(d.receive)
	d.server.AddReceivingMiddleware(d.receiveSearch)
	d.server.AddReceivingMiddleware(withClient)
	d.server.AddReceivingMiddleware(traceRequests(d.opts.Telemetry))
	d.server.AddSendingMiddleware(acknowledgeTasks, sendRaw, d.listed.onlyChanged)
	d.roster.Store(newRoster(nil, true, d.log))
	ended := make(chan struct{})
	stop := verbs.Watch(func() {
		d.offerVersion.Add(1)
		select {
		case d.changed <- struct{}{}:
		default:
		}
	})
	d.offerVersion.Add(1)
	d.refresh()
	d.work.Go(func() { d.refreshLoop(ended) })
	unhear := d.shared.listen(d)
	d.close = sync.OnceFunc(func() {
		stop()
		unhear()
		close(ended)
		d.pending.close()
		d.work.Wait()
		d.notices.Flush()
	})
	return d
}

// Close cancels the calls that wait for a response of their client, and waits for them. It is idempotent.
func (d *Direct) Close() { d.close() }

// Connect serves one client on a transport.
func (d *Direct) Connect(ctx context.Context, transport mcp.Transport) (*mcp.ServerSession, error) {
	return d.server.Connect(ctx, rawTransport{transport}, nil)
}

// ServeStdio speaks MCP on stdin and stdout until the client closes stdin or ctx ends.
func (d *Direct) ServeStdio(ctx context.Context, in *Stdin) error {
	if err := d.server.Run(ctx, rawTransport{stdioTransport(in)}); ctx.Err() == nil {
		return err
	}
	return nil // ctx was canceled
}

// refreshLoop builds a new roster after each change, until ended is closed.
func (d *Direct) refreshLoop(ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-d.changed:
			d.refresh()
		}
	}
}

// Placeholder entries registered with the SDK's server: they make it declare a
// capability and notify clients when a list has changed.
const (
	markerName = "sallyport"
	markerURI  = "sallyport://changed"
)

// refresh rebuilds the roster from the upstreams' current offers. When it returns, the
// roster has every earlier change. Clients are notified only of lists that changed for them.
func (d *Direct) refresh() {
	d.refreshMu.Lock()
	defer d.refreshMu.Unlock()
	now := d.offerVersion.Load()
	if now == d.rosterVersion {
		return
	}
	d.rosterVersion = now
	old, next := d.roster.Load(), newRoster(d.gateway.Offers(), !d.opts.WireNames, d.log)
	d.roster.Store(next)
	d.registerTools(old, next) // also if all entries are equal: the policy may show others
	if had, has := old.has(hasPrompts), next.has(hasPrompts); has && (!had || !equalEntries(old.lists[tool.ListPrompts], next.lists[tool.ListPrompts])) {
		d.server.AddPrompt(&mcp.Prompt{Name: markerName}, nil)
	} else if had && !has {
		d.server.RemovePrompts(markerName)
	}
	unchanged := equalEntries(old.lists[tool.ListResources], next.lists[tool.ListResources]) && equalEntries(old.lists[tool.ListTemplates], next.lists[tool.ListTemplates])
	if had, has := old.has(hasResources), next.has(hasResources); has && (!had || !unchanged) {
		d.server.AddResource(&mcp.Resource{URI: markerURI, Name: markerName}, nil)
	} else if had && !has {
		d.server.RemoveResources(markerURI)
	}
}

// registerTools registers with the SDK's server the tools with arguments that it compares
// with HTTP headers, and notifies clients of the change.
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
			d.server.AddTool(&mcp.Tool{Name: e.key, InputSchema: headerProperties(e.raw)}, nil)
		}
	}
	d.server.AddTool(&mcp.Tool{Name: markerName, InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
}

// headerProperties returns the part of a tool's schema that declares its headers;
// the SDK does not accept every schema.
func headerProperties(raw json.RawMessage) json.RawMessage {
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

func equalEntries(a, b []entry) bool {
	return slices.EqualFunc(a, b, func(a, b entry) bool { return a.key == b.key && string(a.raw) == string(b.raw) })
}

// receive handles the methods of tools, resources and prompts, and leaves the
// rest of the protocol to the SDK.
func (d *Direct) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r, need := d.roster.Load(), requiredCapability(method)
		switch {
		case method == "initialize" || method == "server/discover":
			r = d.current() // a handshake waits for no upstream
			if r.unknown {
				d.overdeclared.Store(true)
			}
		case needsAllUpstreams(method) || r.lacks(need):
			r = d.awaitList(ctx)
		}
		if r.lacks(need) && !d.overdeclared.Load() {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no upstream supports " + method}
		}
		switch method {
		case "tools/list", tool.ListPrompts, tool.ListResources, tool.ListTemplates:
			return d.list(ctx, r, method, req)
		case "tools/call", tool.GetPrompt, tool.ReadResource, tool.Complete:
			return d.forward(ctx, r, method, req)
		case tool.GetTask, tool.UpdateTask, tool.CancelTask:
			return d.task(ctx, method, req)
		case tool.SetLogLevel:
			d.setLevel(ctx, req)
		case methodListen:
			d.record(ctx, r, method, req)
			d.filterSubscriptions(r, req)
			if ids := tasksIn(req); len(ids) > 0 {
				return taskListener{d}.listen(ctx, next, req, ids)
			}
		}
		result, err := next(ctx, method, req)
		if err != nil { // the result of a second initialize is a nil pointer
			return nil, err
		}
		d.declareCapabilities(ctx, r, result, req)
		return result, nil
	}
}

// needsAllUpstreams reports whether the result of a method depends on all upstreams.
func needsAllUpstreams(method string) bool {
	switch method {
	case methodListen, "tools/list", tool.ListPrompts, tool.ListResources, tool.ListTemplates:
		return true
	}
	return false
}

// awaitRoster returns the roster once an upstream, or for "" most of them, has been tried or the wait timed out.
func (d *Direct) awaitRoster(ctx context.Context, upstream string) *roster {
	ctx, cancel := detach(ctx)
	defer cancel()
	d.gateway.Await(ctx, upstream)
	return d.current()
}

// awaitList is awaitRoster of all upstreams for a list, within listWait.
func (d *Direct) awaitList(ctx context.Context) *roster {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	return d.awaitRoster(ctx, "")
}

// current returns an up-to-date roster.
func (d *Direct) current() *roster {
	d.refresh()
	return d.roster.Load()
}

// requiredCapability returns the check for the capability that a method needs, nil for none.
func requiredCapability(method string) func(capabilities) bool {
	switch method {
	case tool.ListPrompts, tool.GetPrompt:
		return hasPrompts
	case tool.ListResources, tool.ListTemplates, tool.ReadResource:
		return hasResources
	case tool.Subscribe, tool.Unsubscribe:
		return hasSubscribe
	case tool.Complete:
		return hasCompletions
	case tool.SetLogLevel:
		return hasLogging
	}
	return nil
}

// declareCapabilities adds the upstreams' capabilities and instructions to a handshake result. A client that searches for
// tools needs no instructions for all of them.
func (d *Direct) declareCapabilities(ctx context.Context, r *roster, result mcp.Result, req mcp.Request) {
	var can *mcp.ServerCapabilities
	instructions := ""
	if as := d.opts.As; as != nil {
		instructions = as.Instructions
	} else if !d.searches(req) {
		instructions = instructionsOf(r.instructions, func(id tool.ID) bool { return d.gateway.AlwaysDenied(ctx, id) })
	}
	switch result := result.(type) {
	case *mcp.InitializeResult:
		can, result.Instructions = result.Capabilities, instructions
	case *mcp.DiscoverResult:
		can, result.Instructions = result.Capabilities, instructions
	}
	if can == nil {
		return
	}
	if keepsTasks(req) {
		can.AddExtension(tasksExtension, nil)
	}
	if r.has(hasCompletions) {
		can.Completions = &mcp.CompletionCapabilities{}
	}
	if r.has(hasLogging) {
		can.Logging = &mcp.LoggingCapabilities{} //nolint:staticcheck // deprecated, and still to be passed on
	}
	if r.has(hasApps) {
		can.AddExtension(mcpapp.Extension, nil)
	}
	if can.Resources != nil {
		can.Resources.Subscribe = r.has(hasSubscribe)
	}
}

// list handles a list method from the roster, without the entries that policy always denies to the caller.
func (d *Direct) list(ctx context.Context, r *roster, method string, req mcp.Request) (mcp.Result, error) {
	var params struct {
		Cursor []byte `json:"cursor"` // base64 of a key
	}
	if json.Unmarshal(paramsOf(req), &params) != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid cursor"}
	}
	if method == "tools/list" && len(params.Cursor) == 0 {
		d.record(ctx, r, method, req)
	}
	entries, next := r.page(method, string(params.Cursor))
	raws := d.visible(ctx, entries, showsApps(req))
	member := map[string]string{"tools/list": "tools", tool.ListPrompts: "prompts", tool.ListResources: "resources", tool.ListTemplates: "resourceTemplates"}[method]
	result := object{member: encode(raws)}
	if next != "" {
		result["nextCursor"] = encode([]byte(next))
	}
	return d.listResult(req, result), nil
}

// listResult returns the result of a list method.
func (d *Direct) listResult(req mcp.Request, result object) mcp.Result {
	if isModernRequest(req) {
		result["_meta"] = encode(map[string]any{mcp.MetaKeyServerInfo: map[string]string{"name": "sallyport", "title": "Sallyport", "version": d.opts.Version}})
		maps.Copy(result, modernMembers(true))
	}
	return &rawResult{raw: encode(result)}
}

// visible returns the entries that policy does not always deny to the caller. apps reports that the client shows interfaces.
func (d *Direct) visible(ctx context.Context, entries []entry, apps bool) []json.RawMessage {
	raws := make([]json.RawMessage, 0, len(entries))
	for _, e := range entries {
		if d.gateway.AlwaysDenied(ctx, e.id) {
			continue
		}
		if raw := e.shown(apps); raw != nil {
			raws = append(raws, raw)
		}
	}
	return raws
}

// record records that the session of a request knows the tools of a roster.
func (d *Direct) record(ctx context.Context, r *roster, method string, req mcp.Request) {
	if d.searches(req) {
		caller := tool.Detach(ctx)
		d.listed.record(method, req, d.searchDigest(ctx), func() digest { return d.searchDigest(caller) })
		return
	}
	caller, apps := tool.Detach(ctx), showsApps(req)
	d.listed.record(method, req, d.listDigest(caller, r, apps), func() digest { return d.listDigest(caller, d.roster.Load(), apps) })
}

// listDigest returns the digest of the tools of a roster that the caller sees.
func (d *Direct) listDigest(ctx context.Context, r *roster, apps bool) (sum digest) {
	h := sha256.New()
	for _, raw := range d.visible(ctx, r.lists["tools/list"], apps) {
		_, _ = h.Write(append(slices.Clip(raw), '\n'))
	}
	h.Sum(sum[:0])
	return sum
}

// modernMembers returns the members that revision 2026-07-28 requires in a result. The
// cache scope is private, since a list can depend on the caller.
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

// metaOf returns the _meta of params, which may be a nil pointer, as for a list without params.
func metaOf(params mcp.Params) map[string]any {
	defer func() { _ = recover() }()
	return params.GetMeta()
}

// isModernRequest reports whether a request is of a revision without sessions.
func isModernRequest(req mcp.Request) bool {
	if params := req.GetParams(); params != nil {
		version, _ := metaOf(params)[mcp.MetaKeyProtocolVersion].(string)
		return version >= modern
	}
	return false
}
