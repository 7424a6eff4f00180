// Package edge puts header fields into the requests that a sandbox sends to a host, so that the sandbox never has their
// values. TLS of the sandbox ends here, with a certificate of the sandbox's own [Authority]; each request is sent to the real
// host over a verified TLS connection. Its main type is [Edge].
package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// handshakeLimit bounds the time of a TLS handshake, with the sandbox and with the host.
	handshakeLimit = 10 * time.Second
	// headLimit bounds the time of a request's head, also of the first one of a connection.
	headLimit = 30 * time.Second
	// idleLimit bounds the time of an unused connection.
	idleLimit = 2 * time.Minute
	// maxHead bounds the head of a request, maxAnswerHead that of an answer.
	maxHead       = 64 << 10
	maxAnswerHead = 256 << 10
	// maxStreams and maxBuffer bound one HTTP/2 connection of the sandbox.
	maxStreams = 100
	maxBuffer  = 256 << 10
	maxIdle    = 16
)

// Options configure an Edge.
type Options struct {
	// Name and Port are those of the host.
	Name string
	Port uint16
	// Header has the fields that each request gets, in place of those that it has.
	Header map[string]string
	// Connections bounds the connections to the host.
	Connections int
	// Dial connects to the host. It reports its own refusals; the text of an error is shown to the sandbox.
	Dial func(ctx context.Context) (net.Conn, error)
	// Refused is called with the reason for what is refused, again for each repetition. It must not block.
	Refused func(reason string)
}

// Edge is one host of one sandbox. It is safe for concurrent use.
type Edge struct {
	opts      Options
	authority string // the host as requests name it
	tls       *tls.Config
	server    *http.Server
	proxy     *httputil.ReverseProxy
	transport *http.Transport
	hide      *strings.Replacer
	conns     chan net.Conn
	ctx       context.Context //nolint:containedctx // ends with the edge, and all requests with it
	stop      context.CancelFunc
	work      sync.WaitGroup
	mu        sync.Mutex // guards the end of ctx against the start of what it ends
}

// New returns an edge with the certificate of its host. The caller must Close it.
func (a *Authority) New(opts Options) (*Edge, error) {
	leaf := a.leaves[opts.Name]
	if leaf == nil {
		return nil, fmt.Errorf("the certificate authority has no host %.80q", opts.Name)
	}
	e := &Edge{opts: opts, authority: opts.Name, hide: echoes(opts.Header), conns: make(chan net.Conn)}
	if opts.Port != 443 {
		e.authority += ":" + strconv.Itoa(int(opts.Port))
	}
	e.ctx, e.stop = context.WithCancel(context.Background())
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // what fails is reported as a refusal, or to the sandbox
	e.tls = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{*leaf}, GetConfigForClient: e.greet}
	e.transport = &http.Transport{
		DialContext:         e.dial,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, ServerName: opts.Name},
		TLSHandshakeTimeout: handshakeLimit, ForceAttemptHTTP2: true, DisableCompression: true, MaxConnsPerHost: opts.Connections, MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout: idleLimit, ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: maxAnswerHead,
	}
	e.proxy = &httputil.ReverseProxy{Rewrite: e.rewrite, Transport: e.transport, ModifyResponse: e.hideEchoes, ErrorHandler: e.fail, ErrorLog: quiet}
	e.server = &http.Server{
		Handler: e, TLSConfig: e.tls, ReadHeaderTimeout: headLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHead, ErrorLog: quiet, ConnState: e.watch,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: maxBuffer, MaxReceiveBufferPerStream: maxBuffer},
		BaseContext: func(net.Listener) context.Context { return e.ctx },
	}
	e.work.Go(func() { _ = e.server.Serve(listener{e}) })
	return e, nil
}

// Close ends all connections and requests, and waits for them.
func (e *Edge) Close() {
	e.mu.Lock()
	e.stop()
	e.mu.Unlock()
	_ = e.server.Close()
	e.work.Wait()
	e.transport.CloseIdleConnections()
}

// Serve serves a connection of the sandbox until its end.
func (e *Edge) Serve(plain net.Conn) {
	c := &conn{Conn: plain, ended: make(chan struct{})}
	defer func() { _ = c.Close() }()
	if !e.begin() {
		return
	}
	defer e.work.Done()
	defer context.AfterFunc(e.ctx, func() { _ = c.Close() })()
	secure, reason := e.handshake(c)
	if reason != "" && e.ctx.Err() == nil {
		e.opts.Refused(reason)
	}
	if secure == nil {
		return
	}
	select {
	case e.conns <- secure:
		<-c.ended
	case <-e.ctx.Done():
	}
}

// ServeHTTP sends a request to the host.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !e.begin() {
		return
	}
	defer e.work.Done()
	if reason := e.check(r); reason != "" {
		e.opts.Refused(reason)
		http.Error(w, "sallyport: "+reason, http.StatusMisdirectedRequest)
		return
	}
	_ = http.NewResponseController(w).EnableFullDuplex() // the answer may begin before the end of the request; HTTP/2 always allows it
	e.proxy.ServeHTTP(w, r)
}

// begin counts a connection or a request, unless the edge is closed.
func (e *Edge) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return false
	}
	e.work.Add(1)
	return true
}

// dialError is an error of Options.Dial, which has been reported.
type dialError struct{ error }

func (e *Edge) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := e.opts.Dial(ctx)
	if err != nil {
		return nil, dialError{err}
	}
	return c, nil
}

// listener gives the server the connections after their handshakes.
type listener struct{ e *Edge }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.e.conns:
		return c, nil
	case <-l.e.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{Port: int(l.e.opts.Port)} }

// conn is a connection of the sandbox.
type conn struct {
	net.Conn
	once    sync.Once
	ended   chan struct{}
	greeted bool // the sandbox began a handshake; not used after it
	mu      sync.Mutex
	used    bool // a request came
	timeout bool // it was closed because nothing came
}

func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = c.Conn.Close()
		close(c.ended)
	})
	return err
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timeout = true
	}
	return n, err
}

// silent reports whether the sandbox closed the connection before it sent a request.
func (c *conn) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.used && !c.timeout
}

func (c *conn) use() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = true
}
