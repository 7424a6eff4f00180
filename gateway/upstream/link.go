package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/capability"
	"sallyport/gateway/upstream/commandtools"
	"sallyport/gateway/upstream/deferred"
	"sallyport/gateway/upstream/inprocess"
	"sallyport/gateway/upstream/process"
	"sallyport/gateway/upstream/serial"
	"sallyport/gateway/upstream/subscription"
	"sallyport/gateway/upstream/webtools"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// modern is the first revision without initialize and sessions.
	modern = "2026-07-28"
	// legacy is the last revision with them.
	legacy = "2025-11-25"

	// streamTimeout is how long a legacy HTTP server may take to open its stream.
	streamTimeout = 500 * time.Millisecond
)

// carrier is the transport of a link: a process or an HTTP client.
type carrier struct {
	conn mcp.Connection
	// stop ends it, gracefully first, within 2 s. It is called once.
	stop func()
	// release, if set, frees the remaining resources after stop.
	release func()
	// listen, if set, receives the server's unsolicited messages, until ctx ends.
	listen func(ctx context.Context, w *wire)
	// onVersion, if set, is called with the negotiated protocol revision.
	onVersion func(version string)
	// authorizing, if set, reports whether requests wait for an authorization.
	authorizing func() bool
}

// dialer makes links. Only the session's loop uses it.
type dialer struct {
	settings      Settings
	opts          Options
	log           *slog.Logger
	redactor      redactor
	onChange      func(parts)
	serializer    *serial.Gate
	subscriptions *subscription.Set
	// dialCarrier starts the transport of a link; tests replace it by one in memory.
	dialCarrier func(ctx context.Context) (*carrier, error)
	// legacyOnly is set once the upstream hung on server/discover.
	legacyOnly atomic.Bool
	// sseOnly is set once the upstream turned out to support only HTTP with SSE.
	sseOnly atomic.Bool
	// process is the last one started, nil for HTTP.
	process atomic.Pointer[process.Process]
}

func newDialer(s *Session) *dialer {
	d := &dialer{settings: s.settings, opts: s.opts, log: s.log, redactor: s.redactor, onChange: s.changed.add, serializer: &s.serializer, subscriptions: s.subscriptions}
	d.dialCarrier = d.carrier
	return d
}

// forget makes the next dial detect protocol and transport again.
func (d *dialer) forget() {
	d.legacyOnly.Store(false)
	d.sseOnly.Store(false)
}

// dial connects and lists the upstream's offer. It leaves nothing open after an error.
func (d *dialer) dial(ctx context.Context) (*link, listing, error) {
	if d.opts.Renew != nil {
		renewed, err := d.opts.Renew(ctx, d.settings)
		if err != nil {
			return nil, listing{}, err
		}
		d.settings = renewed
	}
	l, err := d.open(ctx)
	if errors.Is(err, errNoHandshake) {
		d.log.Warn("upstream hangs on server/discover, restarting it with initialize")
		d.legacyOnly.Store(true)
		l, err = d.open(ctx)
	}
	if d.shouldTrySSE(err) {
		l, err = d.openSSE(ctx, err)
	}
	if err != nil {
		return nil, listing{}, err
	}
	listed, err := l.list(ctx, allParts)
	if err != nil {
		l.close()
		return nil, listing{}, err
	}
	l.wire.listed.Store(true)
	l.awaitStream(ctx)
	return l, listed, nil
}

// openSSE tries HTTP with SSE after the error refused, which it returns if the server
// does not support that either.
func (d *dialer) openSSE(ctx context.Context, refused error) (*link, error) {
	d.sseOnly.Store(true)
	l, err := d.open(ctx)
	if err == nil {
		return l, nil
	}
	d.sseOnly.Store(false)
	if errors.Is(err, errNoStream) {
		err = refused
	}
	return nil, err
}

// open starts the transport of a link and does the handshake.
func (d *dialer) open(ctx context.Context) (*link, error) {
	c, err := d.dialCarrier(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{
		wire: newWire(c, d), carrier: c, settings: d.settings, log: d.log, created: time.Now(),
		optionalTimeout: d.opts.ConnectTimeout / 3, peerRequests: d.opts.Asks, subscriptions: d.subscriptions,
	}
	l.sdk, err = d.client().Connect(ctx, l.wire, d.sessionOptions())
	if err != nil {
		if why := l.wire.reason(); why != nil && !errors.Is(why, errClosed) { // after a failure the SDK closes
			err = why
		}
		l.close()
		return nil, err
	}
	p := d.process.Load()
	l.remote = p != nil && p.IsRemote()
	l.wire.markHeard()
	l.setHandshake(l.sdk.InitializeResult(), d.implementation())
	l.startListening()
	return l, nil
}

// awaitStream waits a short time for a legacy HTTP server to open its stream,
// on which it may send a request during the first call.
func (l *link) awaitStream(ctx context.Context) {
	if !l.peerRequests || l.carrier.listen == nil || l.protocol >= modern {
		return
	}
	limited, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	select {
	case <-l.wire.streaming:
	case <-l.wire.dead:
	case <-limited.Done():
	}
}

// startListening starts to receive the upstream's unsolicited messages.
func (l *link) startListening() {
	if l.protocol >= modern {
		l.wire.background(l.listen)
		return
	}
	if l.carrier.listen != nil {
		l.wire.background(func(ctx context.Context) { l.carrier.listen(ctx, l.wire) })
	}
	l.wire.background(l.restoreSubscriptions)
}

func (d *dialer) carrier(ctx context.Context) (*carrier, error) {
	switch {
	case d.settings.IsAPI():
		return d.dialAPI(ctx)
	case d.settings.InProcess():
		return d.dialTools(ctx)
	case d.settings.HasProcess() && d.settings.URL == "":
		p, err := d.startProcess(ctx)
		if err != nil {
			return nil, err
		}
		d.process.Store(p)
		return &carrier{conn: newStdioConn(p, int64(d.settings.MaxMessage), d.opts.Budget, d.log, d.redactor), stop: p.Stop}, nil
	case d.settings.URL != "" && d.settings.Command == "":
		return d.dialHTTP(ctx)
	}
	return nil, &tool.Error{Kind: tool.Invalid, Message: "it needs either a command or a url"}
}

// dialTools returns the connection to tools that are programs or send requests, which are served in this process.
func (d *dialer) dialTools(ctx context.Context) (*carrier, error) {
	var server inprocess.Server
	var err error
	if d.settings.Egress != nil {
		server = webtools.Open(d.settings, d.opts.Version)
	} else if server, err = commandtools.Open(ctx, d.settings, d.opts.Isolate, d.opts.Version); err != nil {
		return nil, err
	}
	conn := server.Connect()
	return &carrier{conn: conn, stop: func() { _ = conn.Close() }}, nil
}

// startProcess starts the process of a stdio upstream, or connects to the gateway that runs it for all.
func (d *dialer) startProcess(ctx context.Context) (*process.Process, error) {
	if d.settings.Instances != config.InstancesOne || d.opts.Single == nil {
		return d.startHere(ctx)
	}
	there, lost, err := d.opts.Single.Join(ctx, d.settings.ID)
	if err != nil {
		return nil, err
	}
	if there != nil {
		return process.StartWith(ctx, process.Remote(there))
	}
	p, err := d.startHere(ctx)
	if err != nil {
		d.opts.Single.Leave(context.WithoutCancel(ctx), d.settings.ID)
		return nil, err
	}
	p.StopOn(lost)
	return p, nil
}

// startHere starts the process of a stdio upstream at this gateway. One that is to be isolated never runs without a sandbox.
func (d *dialer) startHere(ctx context.Context) (*process.Process, error) {
	if d.settings.Isolate == nil {
		return process.Start(ctx, process.Command{Command: d.settings.Command, Args: d.settings.Args, Dir: d.settings.Dir, Env: d.settings.Env})
	}
	if d.opts.Isolate == nil {
		return nil, commandtools.ErrNoSandboxes
	}
	return process.StartWith(ctx, func(ctx context.Context, streams process.Streams) (process.Program, error) {
		return d.opts.Isolate.Start(ctx, d.settings, streams)
	})
}

func (d *dialer) client() *mcp.Client {
	return mcp.NewClient(d.implementation(), &mcp.ClientOptions{
		Logger:         slog.New(slog.DiscardHandler), // it would log an upstream's text unredacted
		Capabilities:   capability.Of(d.opts.Asks, !d.opts.NoRoots),
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
}

func (d *dialer) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "sallyport", Version: d.opts.Version}
}

func (d *dialer) sessionOptions() *mcp.ClientSessionOptions {
	if d.settings.InProcess() || d.legacyOnly.Load() || d.settings.URL != "" && d.usesSSE() { // SSE is older than server/discover
		return &mcp.ClientSessionOptions{ProtocolVersion: legacy}
	}
	return nil
}

// link is one connection, from the handshake to its end. It is safe for concurrent use.
type link struct {
	wire            *wire
	carrier         *carrier
	sdk             *mcp.ClientSession // nil if the handshake failed
	settings        Settings
	log             *slog.Logger
	created         time.Time
	optionalTimeout time.Duration // time limit of the optional lists
	served          atomic.Bool   // a call has succeeded
	remote          bool          // the process runs at another gateway
	closing         sync.Once

	// From the handshake; name and version are cleaned.
	name, version, protocol string
	server                  tool.Server
	capabilities            map[string]json.RawMessage // of the server
	// meta is sent in every request from revision 2026-07-28 on, peerMeta in
	// calls with a peer and in lists; both are nil before that revision.
	meta, peerMeta json.RawMessage
	peerRequests   bool
	subscriptions  *subscription.Set
	tasks          bool // calls may become tasks
}

func (l *link) setHandshake(init *mcp.InitializeResult, self *mcp.Implementation) {
	l.protocol = init.ProtocolVersion
	if info := init.ServerInfo; info != nil {
		l.name, l.version = sanitize.Line(info.Name, 100), sanitize.Line(info.Version, 50)
	}
	raw := l.wire.handshake()
	l.server = tool.Server{
		Name: l.name, Version: l.version, Protocol: l.protocol,
		Instructions: truncate(init.Instructions, maxInstructions), Capabilities: member(raw, "capabilities"),
	}
	l.capabilities = members(l.server.Capabilities)
	l.tasks = deferred.Supported(l.capabilities, l.protocol >= modern)
	l.wire.closeCancels.Store(l.protocol >= modern && l.settings.URL != "")
	if l.protocol >= modern {
		l.meta = l.metaWith(self, capability.Raw(false))
		if l.peerMeta = l.meta; l.peerRequests {
			l.peerMeta = l.metaWith(self, capability.Raw(true))
		}
	}
}

// metaWith returns the _meta that the protocol requires in every request.
func (l *link) metaWith(self *mcp.Implementation, capabilities json.RawMessage) json.RawMessage {
	if l.tasks {
		capabilities = deferred.Declare(capabilities)
	}
	meta, _ := json.Marshal(map[string]any{ // cannot fail
		mcp.MetaKeyProtocolVersion:    l.protocol,
		mcp.MetaKeyClientInfo:         self,
		mcp.MetaKeyClientCapabilities: capabilities,
	})
	return meta
}

func (l *link) alive() bool {
	select {
	case <-l.wire.dead:
		return false
	default:
		return true
	}
}

// proven reports whether the link worked, so that the next attempt needs no backoff.
func (l *link) proven() bool { return l.served.Load() || time.Since(l.created) > provenAfter }

// send sends the request of a call and returns the raw result.
func (l *link) send(ctx context.Context, r *request) (json.RawMessage, error) {
	if len(r.headers) > 0 {
		ctx = context.WithValue(ctx, headersKey{}, r.headers)
	}
	id, answer := l.wire.expect()
	token := int64(0)
	var e *exchange
	if r.call.Peer != nil {
		var end func()
		e, end = progress{l.wire}.exchange(ctx, id, r.call, r.task)
		defer end()
		ctx, token = context.WithValue(ctx, exchangeKey{}, &httpCall{l.wire, e, numericID(id)}), id
	}
	params, err := r.params(l, token)
	if err != nil || r.call.Task != "" {
		l.wire.forget(numericID(id))
		if err == nil { // it is a task already
			return l.waitTask(ctx, r, e, &deferred.Task{ID: r.call.Task})
		}
		return nil, err
	}
	raw, err := l.wire.await(ctx, answer, &jsonrpc.Request{ID: numericID(id), Method: r.method, Params: params})
	if err != nil || !r.task {
		return raw, err
	}
	t, err := deferred.ParseTask(raw, l.meta != nil)
	if t == nil || err != nil {
		return raw, err
	}
	return l.waitTask(ctx, r, e, t)
}

// page requests one page of a list; the first if cursor is nil.
func (l *link) page(ctx context.Context, method string, cursor *string) (json.RawMessage, error) {
	return l.request(ctx, method, struct {
		Cursor *string         `json:"cursor,omitempty"`
		Meta   json.RawMessage `json:"_meta,omitempty"`
	}{cursor, l.peerMeta})
}

func (l *link) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	data, err := marshal(params)
	if err != nil {
		return nil, err
	}
	return l.wire.request(ctx, method, data)
}

// close ends the link and waits, at most 2 s, until its goroutines and process have ended. It is idempotent.
func (l *link) close() {
	l.closing.Do(func() {
		l.wire.fail(errClosed)
		polite := make(chan struct{})
		go func() { // ends because the wire is closed below
			defer close(polite)
			if l.sdk != nil {
				_ = l.sdk.Close()
			}
		}()
		l.carrier.stop()
		l.wire.shutdown()
		<-polite
		if l.carrier.release != nil {
			l.carrier.release()
		}
	})
}
