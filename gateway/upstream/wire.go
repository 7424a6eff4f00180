package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"sallyport/gateway/upstream/deferred"
	"sallyport/gateway/upstream/process"
	"sallyport/gateway/upstream/serial"
)

var (
	// errClosed is the error of a link that we closed.
	errClosed = errors.New("the session was closed")
	// errNoHandshake is the error of a link without any response after server/discover.
	errNoHandshake = errors.New("no answer to either server/discover or initialize")
	// errFlood is the error of a link to an upstream that sent more requests than could be answered.
	errFlood = errors.New("sends requests without reading the answers")
)

const (
	// firstID separates our request IDs from the SDK's, which count from 1, within
	// 32 bits for servers that store them so.
	firstID = 1_000_000
	// maxOwedReplies is how many requests of an upstream may wait for our response. Few
	// servers send any other than ping.
	maxOwedReplies = 256
	// cancelTimeout bounds sending a cancellation to an upstream.
	cancelTimeout = 5 * time.Second
)

// wire is the connection that the SDK uses for the handshake and to answer pings. Our
// own requests, lists and calls, bypass the SDK, and their results are the bytes that
// were sent: the SDK's types would lose integers over 2^53, unknown block types and the
// order of a schema's properties, and add annotations that were not sent. It is safe
// for concurrent use.
type wire struct {
	conn        mcp.Connection
	probe       time.Duration
	authorizing func() bool // that of the carrier
	log         *slog.Logger
	redactor    redactor
	// changed is called with what the upstream reports as changed.
	changed     func(parts)
	owedReplies atomic.Int32 // requests of the upstream without our response

	toSDK      chan jsonrpc.Message
	heard      chan struct{} // closed at the first response to the SDK, or after the handshake
	dead       chan struct{} // closed once the error is set
	err        error
	goroutines sync.WaitGroup // our goroutines
	end        context.CancelFunc
	// spawn runs f in a goroutine, with a context that ends with the wire.
	spawn func(f func(ctx context.Context))

	// peerRequests reports whether calls may have a peer that handles requests; lane is for such calls.
	peerRequests bool
	tasks        deferred.Watches
	serializer   *serial.Gate
	// notice is called with notifications that belong to no call, within the budget.
	notice func(method string, params json.RawMessage)
	budget *rate.Limiter

	// onVersion is called with the protocol revision of a legacy session; may be nil.
	onVersion       func(version string)
	handshakeID     atomic.Value // jsonrpc.ID of the SDK's last server/discover or initialize
	handshakeResult atomic.Pointer[json.RawMessage]
	initializeID    atomic.Value // jsonrpc.ID of the SDK's initialize
	closeCancels    atomic.Bool  // closing the stream of a response cancels the call
	heardOnce       sync.Once
	listed          atomic.Bool   // the first lists of the connection were received
	streaming       chan struct{} // closed once a legacy HTTP server has answered the request for a stream
	streamOnce      sync.Once
	closeOnce       sync.Once

	mu        sync.Mutex
	ended     bool
	nextID    int64
	pending   map[jsonrpc.ID]chan *jsonrpc.Response
	longLived map[jsonrpc.ID]bool // those of pending whose response comes at the end of a stream
	// exchanges are the requests with a peer, by ID, which is also the progress token.
	exchanges map[int64]*exchange
}

// newWire starts to read from the carrier's connection. The caller must call shut in the end.
func newWire(c *carrier, d *dialer) *wire {
	ctx, cancel := context.WithCancel(context.Background())
	w := &wire{
		conn: c.conn, onVersion: c.onVersion, changed: d.onChange,
		probe: d.opts.ProbeTimeout, authorizing: c.authorizing, log: d.log, redactor: d.redactor,
		toSDK:        make(chan jsonrpc.Message),
		heard:        make(chan struct{}),
		streaming:    make(chan struct{}),
		dead:         make(chan struct{}),
		end:          cancel,
		nextID:       firstID,
		pending:      map[jsonrpc.ID]chan *jsonrpc.Response{},
		longLived:    map[jsonrpc.ID]bool{},
		peerRequests: d.opts.Asks, serializer: d.serializer, exchanges: map[int64]*exchange{},
		notice: d.opts.OnNotice, budget: rate.NewLimiter(noticeRate, noticeBurst),
	}
	w.spawn = func(f func(context.Context)) { w.goroutines.Go(func() { f(ctx) }) }
	w.background(w.pump)
	return w
}

// background runs f in a goroutine, unless the wire has ended, and reports whether it
// does; shut waits for it.
func (w *wire) background(f func(ctx context.Context)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.spawn(f)
	}
	return !w.ended
}

// pump reads and dispatches messages until the connection breaks.
func (w *wire) pump(ctx context.Context) {
	for {
		msg, err := w.conn.Read(ctx)
		if err != nil {
			w.fail(err)
			return
		}
		w.accept(msg)
	}
}

// accept dispatches a message that is not known to belong to a call.
func (w *wire) accept(msg jsonrpc.Message) { w.acceptFrom(msg, nil) }

// acceptFrom dispatches a message. A response goes to the request that waits for it,
// or else to the SDK; a request of the upstream to the peer of a call, or else to the
// SDK, which answers a ping and rejects unknown methods. owner is the call in whose
// response the message arrived, nil if the connection does not tell.
func (w *wire) acceptFrom(msg jsonrpc.Message, owner *exchange) {
	w.redactor.redactMessage(msg)
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		switch {
		case w.deliver(msg):
			return
		case isTooLarge(msg.Error): // its request would wait for ever
			w.fail(msg.Error)
			return
		case !w.fromHandshake(msg):
			return
		}
		w.noteHandshake(msg)
		w.markHeard()
	case *jsonrpc.Request:
		if !msg.IsCall() {
			progress{w}.handle(msg, owner)
			return
		}
		if w.owedReplies.Add(1) > maxOwedReplies {
			w.fail(errFlood)
			return
		}
		if w.peerRequests && deferred.IsPeerRequest(msg.Method) {
			w.forwardRequest(msg, owner)
			return
		}
	}
	w.inject(msg)
}

func (w *wire) inject(msg jsonrpc.Message) {
	select {
	case w.toSDK <- msg:
	case <-w.dead:
	}
}

// fromHandshake reports whether a response that matches none of our requests is for the SDK.
func (w *wire) fromHandshake(resp *jsonrpc.Response) bool {
	n, numeric := resp.ID.Raw().(int64)
	if resp.ID.IsValid() && !(isMalformed(resp.Error) && numeric && n >= firstID) {
		return true
	}
	w.log.Warn("skip response without a matching request", "reason", w.redactor.describe(resp.Error))
	return false
}

// requestID returns the ID of the request that a response is for: its own, or that of the
// only request in flight if it has none. It is called with mu held.
func (w *wire) requestID(resp *jsonrpc.Response) jsonrpc.ID {
	switch id := resp.ID.Raw().(type) {
	case string: // some servers return a number as a string
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			return numericID(n)
		}
	case nil:
		short := make([]jsonrpc.ID, 0, 2)
		for id := range w.pending {
			if len(short) < 2 && !w.longLived[id] {
				short = append(short, id)
			}
		}
		if len(short) == 1 {
			return short[0]
		}
	}
	return resp.ID
}

func (w *wire) deliver(resp *jsonrpc.Response) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.requestID(resp)
	answer, ok := w.pending[id]
	if ok {
		delete(w.pending, id)
		if n, ok := id.Raw().(int64); ok && !w.exchanges[n].lasts() {
			delete(w.exchanges, n) // later messages do not belong to the call
		}
		answer <- resp // does not block: capacity 1, one sender
	}
	return ok
}

// noteHandshake stores the server's handshake result, and reports the revision that
// initialize negotiated, which HTTP requests must send.
func (w *wire) noteHandshake(resp *jsonrpc.Response) {
	if resp.ID == w.handshakeID.Load() && resp.Error == nil {
		w.handshakeResult.Store(&resp.Result)
	}
	if w.onVersion == nil || resp.ID != w.initializeID.Load() {
		return
	}
	var result struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(resp.Result, &result) == nil {
		w.onVersion(result.ProtocolVersion)
	}
}

// handshake returns the raw result of server/discover or initialize, nil if there is none.
func (w *wire) handshake() json.RawMessage {
	if raw := w.handshakeResult.Load(); raw != nil {
		return *raw
	}
	return nil
}

// markStreaming records that the server responded to the request for its stream, or refused it.
func (w *wire) markStreaming() { w.streamOnce.Do(func() { close(w.streaming) }) }

func (w *wire) markHeard() { w.heardOnce.Do(func() { close(w.heard) }) }

// request sends one of our own requests and waits for the raw result. The error
// is ctx's, the *jsonrpc.Error of the upstream, or else why the wire is dead.
func (w *wire) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	id, answer := w.expect()
	return w.await(ctx, answer, &jsonrpc.Request{ID: numericID(id), Method: method, Params: params})
}

// stream is request for a long-lived response. A failed stream does not end the wire.
func (w *wire) stream(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	n, answer := w.expect()
	req := &jsonrpc.Request{ID: numericID(n), Method: method, Params: params}
	w.mu.Lock()
	w.longLived[req.ID] = true
	w.mu.Unlock()
	if err := w.conn.Write(ctx, req); err != nil {
		w.forget(req.ID)
		return nil, err
	}
	return w.result(ctx, answer, req.ID)
}

// await sends a registered request and waits for its result.
func (w *wire) await(ctx context.Context, answer chan *jsonrpc.Response, req *jsonrpc.Request) (json.RawMessage, error) {
	if ctx.Value(exchangeKey{}) == nil {
		ctx = context.WithValue(ctx, exchangeKey{}, &httpCall{wire: w, id: req.ID})
	}
	if err := w.conn.Write(ctx, req); err != nil {
		w.forget(req.ID)
		return nil, w.writeError(ctx, req.ID, err)
	}
	return w.result(ctx, answer, req.ID)
}

func (w *wire) result(ctx context.Context, answer chan *jsonrpc.Response, id jsonrpc.ID) (json.RawMessage, error) {
	defer w.forget(id)
	select {
	case resp := <-answer:
		return resp.Result, resp.Error
	case <-ctx.Done():
		w.cancel(id)
		return nil, ctx.Err()
	case <-w.dead:
	}
	select {
	case resp := <-answer: // received before the end
		return resp.Result, resp.Error
	default:
		return nil, w.err
	}
}

// expect registers a new request and returns its ID and the channel for its
// response. The caller must call await or forget.
func (w *wire) expect() (int64, chan *jsonrpc.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nextID++
	answer := make(chan *jsonrpc.Response, 1)
	w.pending[numericID(w.nextID)] = answer
	return w.nextID, answer
}

func (w *wire) forget(id jsonrpc.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, id)
	delete(w.longLived, id)
}

// writeError returns the error for a failed write. Over HTTP a write lasts until the
// server starts to respond, so the request may have arrived.
func (w *wire) writeError(ctx context.Context, id jsonrpc.ID, err error) error {
	if ctx.Err() != nil {
		w.cancel(id)
		return ctx.Err()
	}
	if errors.Is(err, mcp.ErrSessionMissing) { // the session is unknown, so the request was not processed
		w.fail(err)
		return &unacknowledgedError{err}
	}
	if _, ok := errors.AsType[*url.Error](err); ok { // no server, or it closed the connection
		w.fail(err)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return &undeliveredError{w.cause(err)}
	}
	return w.cause(err)
}

// cancel notifies the upstream, in the background, that a request was canceled.
func (w *wire) cancel(id jsonrpc.ID) {
	if w.closeCancels.Load() {
		return
	}
	w.background(func(ctx context.Context) {
		limited, stop := context.WithTimeout(ctx, cancelTimeout)
		defer stop()
		params, _ := json.Marshal(map[string]any{"requestId": id.Raw(), "reason": "no longer wanted"}) // cannot fail
		if err := w.conn.Write(limited, &jsonrpc.Request{Method: "notifications/cancelled", Params: params}); err != nil {
			w.log.Debug("cancel call", "reason", w.redactor.describe(err))
		}
	})
}

// fail ends the wire with the first error given.
func (w *wire) fail(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.dead:
	default:
		w.err = why
		close(w.dead)
	}
}

// cause returns why the wire is dead, or err if it is not.
func (w *wire) cause(err error) error {
	if why := w.reason(); why != nil {
		return why
	}
	return err
}

// reason returns why the wire is dead, nil if it is not.
func (w *wire) reason() error {
	select {
	case <-w.dead:
		return w.err
	default:
		return nil
	}
}

// shutdown ends the wire and waits for its goroutines. The carrier must have been stopped.
func (w *wire) shutdown() {
	_ = w.Close()
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.end()
	w.goroutines.Wait()
}

// Connect implements [mcp.Transport].
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// Read implements [mcp.Connection] for the SDK.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-w.toSDK:
		return msg, nil
	case <-w.dead:
		return nil, w.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection] for the SDK. To the SDK a failed write is the
// end of the connection, so only failures that end it are reported.
func (w *wire) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok { // a response to the upstream, which may reject it
		w.writeBestEffort(ctx, msg)
		w.owedReplies.Add(-1)
		return nil
	}
	switch req.Method {
	case "server/discover":
		w.handshakeID.Store(req.ID)
		return w.endOnExit(w.discover(ctx, req))
	case "initialize":
		w.handshakeID.Store(req.ID)
		w.initializeID.Store(req.ID)
	case "notifications/cancelled":
		w.writeBestEffort(ctx, msg)
		return nil
	}
	return w.endOnExit(w.conn.Write(ctx, msg))
}

// endOnExit ends the wire if err, of a write of the SDK, says that the process has ended, before the SDK closes the wire, which
// would hide the reason. It returns err.
func (w *wire) endOnExit(err error) error {
	if process.IsExit(err) {
		w.fail(err)
	}
	return err
}

func (w *wire) writeBestEffort(ctx context.Context, msg jsonrpc.Message) {
	if err := w.conn.Write(ctx, msg); err != nil {
		w.log.Debug("write to upstream", "reason", w.redactor.describe(err))
	}
}

// Close implements [mcp.Connection].
func (w *wire) Close() error {
	w.fail(errClosed)
	var err error
	w.closeOnce.Do(func() { err = w.conn.Close() })
	return err
}

// SessionID implements [mcp.Connection].
func (w *wire) SessionID() string { return w.conn.SessionID() }

func numericID(n int64) jsonrpc.ID {
	id, _ := jsonrpc.MakeID(float64(n)) // a number is always valid
	return id
}
