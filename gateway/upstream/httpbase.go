package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/budget"
	"sallyport/internal/sockets"
	"sallyport/internal/tool"
)

const (
	// codeHTTP, less an HTTP status, marks the JSON-RPC error that we make of it;
	// codeScope one that asks for a wider authorization. No server has a reason to
	// use them, and gains nothing if it does.
	codeHTTP  = -1_000_000
	codeScope = -1_001_000
	// codeScopeSaid is codeScope with a message that says what to do.
	codeScopeSaid = -1_001_001

	// farewell bounds the DELETE that ends a session.
	farewell = time.Second
	// maxErrorBody bounds what is read of an answer that is an error, in bytes.
	maxErrorBody = 64 << 10

	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	nameHeader    = "Mcp-Name"
)

// dialHTTP makes the connection to an HTTP server: of the kind that the settings
// say, or streamable unless the server turned out not to know that. ctx is the
// attempt's own; the connection outlives it.
func (d *dialer) dialHTTP(ctx context.Context) (*carrier, error) {
	endpoint, err := url.Parse(d.settings.URL)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "its url must begin with http:// or https:// and name a host"}
	}
	life, end := context.WithCancel(context.Background())
	base, sockets := newTransport(d.settings.Socket)
	errands := &errands{life: life}
	door := &door{
		base: base, origin: originOf(endpoint), headers: d.settings.Headers, most: d.settings.MaxMessage, room: d.opts.Budget, join: joiner(life),
		guard: &guard{
			auth: d.opts.Auth, remedy: remedyFor(d.settings, d.opts.Auth), veil: d.veil,
			spawn: errands.run,
		},
	}
	release := func() {
		base.CloseIdleConnections()
		errands.wait()
		sockets.Close()
	}
	dial := d.dialStreamable
	if d.overSSE() {
		dial = d.dialStream
	}
	c, err := dial(ctx, life, door)
	if err != nil {
		end()
		release()
		return nil, err
	}
	stop := c.stop
	c.stop = func() {
		stop()
		end()
	}
	c.release = release
	return c, nil
}

// errands are goroutines of a link that begin at any time of its life.
type errands struct {
	life  context.Context //nolint:containedctx // the life of what runs, not of a call
	mu    sync.Mutex
	ended bool
	work  sync.WaitGroup
}

// run runs f with the link's life as context, or not at all when that is over:
// a caller that waits for f waits for the end of the link too.
func (e *errands) run(f func(ctx context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.work.Go(func() { f(e.life) })
	}
}

// wait ends it. The life must be over.
func (e *errands) wait() {
	e.mu.Lock()
	e.ended = true
	e.mu.Unlock()
	e.work.Wait()
}

func (d *dialer) overSSE() bool { return d.settings.Transport == "sse" || d.old.Load() }

// dialStreamable makes the connection to a streamable HTTP server. Nothing is sent yet.
func (d *dialer) dialStreamable(_, life context.Context, door *door) (*carrier, error) {
	client := &http.Client{Transport: door, CheckRedirect: door.redirect}
	transport := &mcp.StreamableClientTransport{
		Endpoint: d.settings.URL, HTTPClient: client, MaxEventSize: int(door.most),
		// Without a connection of its own type the SDK does not open this stream;
		// see listener, which also outlives proxies that cut it.
		DisableStandaloneSSE: true,
	}
	conn, err := transport.Connect(life)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &carrier{
		conn: conn,
		stop: func() { _ = conn.Close() }, // ends the session on the server
		listen: func(ctx context.Context, w *wire) {
			(&listener{url: d.settings.URL, client: client, wire: w, most: int(door.most), room: door.room}).run(ctx)
		},
		settled: func(version string) { door.version.Store(&version) },
	}, nil
}

// dialStream makes the connection to a server of HTTP with SSE.
func (d *dialer) dialStream(ctx, life context.Context, door *door) (*carrier, error) {
	client := &http.Client{Transport: door, CheckRedirect: door.redirect}
	conn, stop, err := dialSSE(ctx, life, door, client, d.settings.URL)
	if err != nil {
		return nil, err
	}
	return &carrier{conn: conn, stop: stop}, nil
}

// outdated reports whether a server refused the handshake as one does that knows
// only HTTP with SSE, and has not been asked for that yet. An error that is MCP's
// own comes from a server that understood.
func (d *dialer) outdated(err error) bool {
	if d.settings.URL == "" || d.settings.Transport == "streamable" || d.overSSE() {
		return false
	}
	switch httpStatus(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// httpStatus returns the status that door.explain made an error of, 0 if it did not.
func httpStatus(err error) int {
	if e := answered(err); e != nil && e.Code <= codeHTTP && e.Code > codeHTTP-1000 {
		return int(codeHTTP - e.Code)
	}
	return 0
}

// newTransport connects over TCP or, if socket is not "", over that Unix socket,
// whatever the URL's host.
func newTransport(socket string) (*http.Transport, *sockets.Set) {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	dial, proxy := dialer.DialContext, http.ProxyFromEnvironment
	if socket != "" {
		proxy = nil
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	sockets := sockets.New(dial)
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         sockets.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
	}, sockets
}

// joiner returns a function that gives a request's context a second end: that of life.
func joiner(life context.Context) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		if life.Err() != nil {
			cancel() // now; AfterFunc would do it a little later
		}
		stop := context.AfterFunc(life, cancel)
		return ctx, func() { stop(); cancel() }
	}
}

// door is the one way out to an HTTP server. It adds the headers, lets nothing
// go to another origin, ends every exchange with the link, bounds what comes
// back and says what an error status means.
type door struct {
	base    http.RoundTripper
	origin  string
	headers map[string]string
	most    int64 // bytes of one message
	room    *budget.Budget
	guard   *guard
	join    func(context.Context) (context.Context, context.CancelFunc)
	// version is the revision of a legacy session, nil until it is known.
	version atomic.Pointer[string]
}

func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// RoundTrip implements [http.RoundTripper].
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	if originOf(req.URL) != d.origin {
		return nil, errors.New("request to another origin")
	}
	ctx, cancel := d.join(req.Context())
	if err := ctx.Err(); err != nil { // before it can keep a connection open
		cancel()
		return nil, err
	}
	if req.Method == http.MethodDelete {
		ctx, cancel = within(ctx, cancel, farewell)
	}
	out := req.Clone(ctx)
	d.dress(out)
	resp, err := d.guard.send(out, d.base)
	if e, ok := errors.AsType[*refusedError](err); ok && req.Method == http.MethodPost {
		cancel()
		return failure(e.code, e.reason), nil
	}
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, most: d.limit(resp), done: cancel}
	tap(req, resp, d.most, d.room)
	if resp.StatusCode >= 400 && req.Method == http.MethodPost {
		return d.explain(req, resp), nil
	}
	return resp, nil
}

func within(ctx context.Context, cancel context.CancelFunc, limit time.Duration) (context.Context, context.CancelFunc) {
	limited, stop := context.WithTimeout(ctx, limit)
	return limited, func() { stop(); cancel() }
}

// dress adds what the SDK does not: the settings' headers, where the protocol
// has no use of its own for them, and the revision of a legacy session.
func (d *door) dress(req *http.Request) {
	for name, value := range d.headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
		} else if req.Header.Get(name) == "" {
			req.Header.Set(name, value)
		}
	}
	repeatArguments(req.Context(), req.Header)
	if name := req.Header.Get(nameHeader); strings.ContainsFunc(name, unicode.IsControl) {
		req.Header.Set(nameHeader, headerText(name)) // sent as it is, it would be no header
	}
	if version := d.version.Load(); version != nil && req.Header.Get(versionHeader) == "" {
		req.Header.Set(versionHeader, *version)
	}
}

// redirect lets only those go on that stay where they are meant for: the body
// holds the arguments of a call, and the headers the keys.
func (d *door) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case originOf(req.URL) != d.origin:
		return fmt.Errorf("the server redirects to %s, which is another origin", originOf(req.URL))
	case req.Method != via[0].Method:
		return errors.New("the server redirects and drops the request")
	case len(via) > 5:
		return errors.New("the server redirects without end")
	}
	return nil
}

// explain turns an error status into a JSON-RPC error, unless the body is one
// already. The SDK takes any other body for the end of the connection, and with
// it of every other call.
func (d *door) explain(req *http.Request, resp *http.Response) *http.Response {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound && req.Header.Get(sessionHeader) != "" {
		return replaceBody(resp, resp.StatusCode, nil) // the SDK knows: the session is gone
	}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part says as much as nothing
	var said envelope
	if json.Unmarshal(data, &said) == nil && text(said.Version) == "2.0" {
		if failure := said.failure(); failure != nil {
			return failureOf(failure) // whatever its id, which may be null
		}
	}
	return failure(codeHTTP-int64(resp.StatusCode), status(resp))
}

// failure is a response that fails one request only.
func failure(code int64, message string) *http.Response {
	return failureOf(&jsonrpc.Error{Code: code, Message: message})
}

func failureOf(err *jsonrpc.Error) *http.Response {
	data, _ := marshal(struct { // what was read as JSON, or is a string, can be written
		Version string         `json:"jsonrpc"`
		ID      int            `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", 0, err})
	resp := &http.Response{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}}}
	return replaceBody(resp, http.StatusBadRequest, data)
}

func replaceBody(resp *http.Response, status int, data []byte) *http.Response {
	changed := *resp
	changed.StatusCode, changed.ContentLength = status, int64(len(data))
	changed.Body = io.NopCloser(bytes.NewReader(data))
	return &changed
}

// body is a response's body with an end: done is called when it is closed.
type body struct {
	io.ReadCloser
	most int64 // bytes of it; negative means no limit
	read int64
	done context.CancelFunc
}

// limit bounds one message. A stream of events has no end; each of its events is bounded where it is read.
func (d *door) limit(resp *http.Response) int64 {
	if isStream(resp) {
		return -1
	}
	return d.most
}

func isStream(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.most >= 0 && b.read > b.most {
		return 0, tooLong(b.most)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
