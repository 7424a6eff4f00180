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
	"sallyport/gateway/upstream/paramheader"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/sockets"
	"sallyport/internal/tlsfiles"
	"sallyport/internal/tool"
)

const (
	// codeHTTP minus an HTTP status is the code of the JSON-RPC error for that status;
	// codeScope is the code for a missing scope. A server that sends these codes itself
	// gains nothing.
	codeHTTP  = -1_000_000
	codeScope = -1_001_000
	// codeScopeRemedy is codeScope with a message that includes the remedy.
	codeScopeRemedy = -1_001_001

	// deleteTimeout bounds the DELETE that ends a session.
	deleteTimeout = time.Second
	// maxErrorBody bounds what is read of an error response, in bytes.
	maxErrorBody = 64 << 10

	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	nameHeader    = "Mcp-Name"
)

// dialHTTP connects to an HTTP server, by the transport of the settings, or by
// streamable HTTP unless the server turned out not to support it. ctx bounds the
// attempt; the connection outlives it.
func (d *dialer) dialHTTP(ctx context.Context) (*carrier, error) {
	endpoint, err := url.Parse(d.settings.URL)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "its url must begin with http:// or https:// and name a host"}
	}
	base, sockets, err := d.newTransport(d.settings.Socket)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	errands := &backgroundTasks{life: life}
	door := &originTransport{
		base: base, origin: webapi.Origin(endpoint), headers: d.settings.Headers, maxMessage: int64(d.settings.MaxMessage), budget: d.opts.Budget, join: contextJoiner(life),
		guard: &guard{
			auth: d.opts.Auth, remedy: remedyFor(d.settings, d.opts.Auth), redactor: d.redactor,
			spawn: errands.run,
		},
	}
	release := func() {
		base.CloseIdleConnections()
		errands.wait()
		sockets.Close()
	}
	dial := d.dialStreamable
	if d.usesSSE() {
		dial = d.dialLegacySSE
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
	c.release, c.authorizing = release, door.guard.authorizing
	return c, nil
}

// backgroundTasks runs the goroutines of a link, which start at any time before its end.
type backgroundTasks struct {
	life  context.Context //nolint:containedctx // of the goroutines, not of a call
	mu    sync.Mutex
	ended bool
	work  sync.WaitGroup
}

// run starts f with the link's context, or does nothing after the end of the link:
// a caller that waits for f must also wait for the end of the link.
func (e *backgroundTasks) run(f func(ctx context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.work.Go(func() { f(e.life) })
	}
}

// wait rejects further goroutines and waits for the running ones. The link's context must be canceled.
func (e *backgroundTasks) wait() {
	e.mu.Lock()
	e.ended = true
	e.mu.Unlock()
	e.work.Wait()
}

func (d *dialer) usesSSE() bool { return d.settings.Transport == "sse" || d.sseOnly.Load() }

// dialStreamable returns the connection to a streamable HTTP server. It sends nothing yet.
func (d *dialer) dialStreamable(_, life context.Context, door *originTransport) (*carrier, error) {
	client, address := &http.Client{Transport: door, CheckRedirect: door.redirect}, d.settings.URL
	transport := &mcp.StreamableClientTransport{
		Endpoint: address, HTTPClient: client, MaxEventSize: int(door.maxMessage),
		// The SDK opens this stream only on its own connection type; listener does it
		// here, and also reopens it after a proxy has cut it.
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
			(&listener{url: address, client: client, wire: w, maxEvent: int(door.maxMessage), budget: door.budget}).run(ctx)
		},
		onVersion: func(version string) { door.version.Store(&version) },
	}, nil
}

// dialLegacySSE connects to a server of HTTP with SSE (revision 2024-11-05).
func (d *dialer) dialLegacySSE(ctx, life context.Context, door *originTransport) (*carrier, error) {
	client := &http.Client{Transport: door, CheckRedirect: door.redirect}
	conn, stop, err := dialSSE(ctx, life, door, client, d.settings.URL)
	if err != nil {
		return nil, err
	}
	return &carrier{conn: conn, stop: stop}, nil
}

// shouldTrySSE reports whether a server refused the handshake like one that supports only
// HTTP with SSE, and that transport has not been tried yet. A JSON-RPC error comes from
// a server that supports streamable HTTP.
func (d *dialer) shouldTrySSE(err error) bool {
	if d.settings.URL == "" || d.settings.IsAPI() || d.settings.Transport == "streamable" || d.usesSSE() {
		return false
	}
	switch httpStatus(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// httpStatus returns the HTTP status that err was made from, 0 for any other error.
func httpStatus(err error) int {
	if e := rpcError(err); e != nil && e.Code <= codeHTTP && e.Code > codeHTTP-1000 {
		return int(codeHTTP - e.Code)
	}
	return 0
}

// newTransport connects over TCP or, if socket is not "", over that Unix socket,
// whatever the URL's host.
func (d *dialer) newTransport(socket string) (*http.Transport, *sockets.Set, error) {
	secure, err := d.settings.TLS.Config()
	if fault, ok := errors.AsType[*tlsfiles.Fault](err); ok {
		return nil, nil, &tool.Error{Kind: tool.Invalid, Message: "its tls." + fault.Key + " cannot be used: " + fault.Message}
	}
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
		TLSClientConfig:     secure,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
	}, sockets, nil
}

// contextJoiner returns a function that derives a context which also ends with life.
func contextJoiner(life context.Context) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		if life.Err() != nil {
			cancel() // at once; AfterFunc would do it later
		}
		stop := context.AfterFunc(life, cancel)
		return ctx, func() { stop(); cancel() }
	}
}

// originTransport is the only RoundTripper for an HTTP server. It adds the headers, rejects
// requests to another origin, cancels requests at the end of the link, bounds
// responses and turns an error status into a JSON-RPC error.
type originTransport struct {
	base       http.RoundTripper
	origin     string
	headers    map[string]string
	maxMessage int64 // bytes of one message
	budget     *budget.Budget
	guard      *guard
	join       func(context.Context) (context.Context, context.CancelFunc)
	// version is the revision of a legacy session, nil until it is known.
	version atomic.Pointer[string]
}

// RoundTrip implements [http.RoundTripper].
func (d *originTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if webapi.Origin(req.URL) != d.origin {
		return nil, errors.New("request to another origin")
	}
	ctx, cancel := d.join(req.Context())
	if err := ctx.Err(); err != nil { // before it uses a connection
		cancel()
		return nil, err
	}
	if req.Method == http.MethodDelete {
		ctx, cancel = withLimit(ctx, cancel, deleteTimeout)
	}
	out := req.Clone(ctx)
	d.addHeaders(out)
	resp, err := d.guard.send(out, d.base)
	if e, ok := errors.AsType[*refusedError](err); ok && req.Method == http.MethodPost {
		cancel()
		return failure(e.code, e.reason), nil
	}
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, limit: d.limit(resp), done: cancel}
	interceptBody(req, resp, d.maxMessage, d.budget)
	if resp.StatusCode >= 400 && req.Method == http.MethodPost {
		return d.translateError(req, resp), nil
	}
	return resp, nil
}

func withLimit(ctx context.Context, cancel context.CancelFunc, limit time.Duration) (context.Context, context.CancelFunc) {
	limited, stop := context.WithTimeout(ctx, limit)
	return limited, func() { stop(); cancel() }
}

// addHeaders adds the headers that the SDK does not: those of the settings, unless the
// protocol has set them, and the revision of a legacy session.
func (d *originTransport) addHeaders(req *http.Request) {
	for name, value := range d.headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
		} else if req.Header.Get(name) == "" {
			req.Header.Set(name, value)
		}
	}
	repeatArguments(req.Context(), req.Header)
	if name := req.Header.Get(nameHeader); strings.ContainsFunc(name, unicode.IsControl) {
		req.Header.Set(nameHeader, paramheader.Text(name)) // a control character is invalid in a header
	}
	if version := d.version.Load(); version != nil && req.Header.Get(versionHeader) == "" {
		req.Header.Set(versionHeader, *version)
	}
}

// redirect allows only redirects within the origin: the body has the arguments
// of a call, and the headers the keys.
func (d *originTransport) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case webapi.Origin(req.URL) != d.origin:
		return fmt.Errorf("the server redirects to %s, which is another origin", webapi.Origin(req.URL))
	case req.Method != via[0].Method:
		return errors.New("the redirect changes the HTTP method")
	case len(via) > 5:
		return errors.New("too many redirects")
	}
	return nil
}

// translateError turns an error status into a JSON-RPC error, unless the body already is
// one. On any other body the SDK would close the connection, and with it fail
// every other call.
func (d *originTransport) translateError(req *http.Request, resp *http.Response) *http.Response {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound && req.Header.Get(sessionHeader) != "" {
		return replaceBody(resp, resp.StatusCode, nil) // the SDK recognizes it as a lost session
	}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is treated like none
	var said envelope
	if json.Unmarshal(data, &said) == nil && text(said.Version) == "2.0" {
		if failure := said.failure(); failure != nil {
			return failureOf(failure) // with any ID, which may be null
		}
	}
	return failure(codeHTTP-int64(resp.StatusCode), status(resp))
}

// failure returns a response that fails only its own request.
func failure(code int64, message string) *http.Response {
	return failureOf(&jsonrpc.Error{Code: code, Message: message})
}

func failureOf(err *jsonrpc.Error) *http.Response {
	data, _ := marshal(struct { // cannot fail: its members are strings, or valid JSON
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

// limitedBody is a response's body with a size limit; done is called when it is closed.
type limitedBody struct {
	io.ReadCloser
	limit int64 // bytes of it; negative means no limit
	read  int64
	done  context.CancelFunc
}

// limit returns the limit of a body: one message, or none for a stream of events, where each event is bounded when it is read.
func (d *originTransport) limit(resp *http.Response) int64 {
	if isStream(resp) {
		return -1
	}
	return d.maxMessage
}

func isStream(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += int64(n); b.limit >= 0 && b.read > b.limit {
		return 0, tooLargeError(b.limit)
	}
	return n, err
}

func (b *limitedBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
