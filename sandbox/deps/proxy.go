package deps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sallyport/internal/hostdial"
	"sallyport/internal/sanitize"
)

// Target is one destination that a Proxy allows.
type Target struct {
	// Host is a name or an address in lower case, Port a number.
	Host, Port string
	// Private allows addresses of private networks and of this machine; it is set for hosts that the operator configured.
	Private bool
}

// Proxy is the only network access of an installing sandbox. It allows CONNECT, and GET
// and HEAD over plain HTTP, to the targets only, and limits the bytes that are transferred.
type Proxy struct {
	targets   []Target
	down, up  atomic.Int64 // how many bytes may still come in and go out
	transport *http.Transport
	log       *slog.Logger
	slots     chan struct{}
	idle      time.Duration
	dialer    net.Dialer

	mu      sync.Mutex // guards the two below
	reached []string
	refused []string
}

// ProxyOptions bound a Proxy.
type ProxyOptions struct {
	// Down and Up are how many bytes may come in and go out, all connections together; 0 is 1 GiB and 64 MiB.
	Down, Up int64
	// Connections is how many may be open at once; further ones are refused; 0 is 64.
	Connections int
	// Idle is the idle timeout of a connection; 0 is 30 s.
	Idle time.Duration
	// Logger receives each host when it is first reached or refused; nil discards.
	Logger *slog.Logger
}

var (
	errPrivate   = errors.New("the name leads to an address that is not public")
	errExhausted = errors.New("the allowance of bytes is used up")
)

// NewProxy makes a proxy to the targets.
func NewProxy(targets []Target, opts ProxyOptions) *Proxy {
	p := &Proxy{targets: targets, log: opts.Logger, idle: opts.Idle}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.idle == 0 {
		p.idle = 30 * time.Second
	}
	if opts.Connections == 0 {
		opts.Connections = 64
	}
	p.slots = make(chan struct{}, opts.Connections)
	p.down.Store(opts.Down)
	if opts.Down == 0 {
		p.down.Store(1 << 30)
	}
	p.up.Store(opts.Up)
	if opts.Up == 0 {
		p.up.Store(64 << 20)
	}
	p.dialer.Timeout = 10 * time.Second
	p.transport = &http.Transport{DialContext: p.dial, DisableCompression: true, ResponseHeaderTimeout: p.idle, MaxResponseHeaderBytes: 64 << 10}
	return p
}

// Serve serves the listener's connections until ctx ends. It closes the listener and
// waits for all connections. It returns the server's error.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			open.Add(1)
			defer open.Done()
			p.handle(w, r)
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: p.idle, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	err := server.Serve(listener)
	cancel()
	stop()
	_ = server.Close()
	open.Wait()
	p.transport.CloseIdleConnections()
	return err
}

// RefusedHosts returns the requested hosts that are not allowed, as "host:port", each once.
func (p *Proxy) RefusedHosts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// Exhausted reports whether the allowance of bytes is used up.
func (p *Proxy) Exhausted() bool { return p.down.Load() < 0 || p.up.Load() < 0 }

func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	host, port := r.URL.Hostname(), r.URL.Port()
	if r.Method != http.MethodConnect && port == "" {
		port = "80"
	}
	if err := p.checkRequest(r, host, port); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.connect(w, r, net.JoinHostPort(host, port))
		return
	}
	p.forward(w, r)
}

// checkRequest checks whether the destination of a request is allowed, and records it.
func (p *Proxy) checkRequest(r *http.Request, host, port string) error {
	place := sanitize.Line(net.JoinHostPort(strings.ToLower(host), port), 200)
	plainHTTP := r.Method == http.MethodGet || r.Method == http.MethodHead
	ok := p.target(host, port) != nil && (r.Method == http.MethodConnect || plainHTTP && r.URL.Scheme == "http")
	p.mu.Lock()
	defer p.mu.Unlock()
	list, message := &p.refused, "install: host refused"
	if ok {
		list, message = &p.reached, "install: host reached"
	}
	if !slices.Contains(*list, place) && len(*list) < 100 {
		*list = append(*list, place)
		p.log.Info(message, "host", place, "method", sanitize.Line(r.Method, 20))
	}
	if !ok {
		return fmt.Errorf("%s is not an index that the operator allows", place)
	}
	return nil
}

func (p *Proxy) target(host, port string) *Target {
	i := slices.IndexFunc(p.targets, func(t Target) bool { return t.Host == strings.ToLower(host) && t.Port == port })
	if i < 0 {
		return nil
	}
	return &p.targets[i]
}

// dial connects to a target and checks the resolved address.
func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	target := p.target(host, port)
	if target == nil {
		return nil, errPrivate
	}
	dialer := p.dialer
	dialer.Control = func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return target.checkAddress(to.Addr().Unmap())
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, proxy: p}, nil
}

// checkAddress returns an error for addresses that are not public, unless the target is private.
// Link-local addresses, where clouds serve credentials, are refused for every target.
func (t *Target) checkAddress(ip netip.Addr) error {
	literal, err := netip.ParseAddr(t.Host)
	switch {
	case err == nil && literal.Unmap() == ip && t.Private:
		return nil
	case hostdial.Check(ip, t.Private) != nil:
		return errPrivate
	}
	return nil
}

// connect tunnels data in both directions until one side closes.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, address string) {
	upstream, err := p.dial(r.Context(), "tcp", address)
	if err != nil {
		p.writeDialError(w, address, err)
		return
	}
	defer func() { _ = upstream.Close() }()
	guest, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "no tunnel", http.StatusInternalServerError)
		return
	}
	defer func() { _ = guest.Close() }()
	shut := func() { _, _ = guest.Close(), upstream.Close() }
	defer context.AfterFunc(r.Context(), shut)()
	_ = guest.SetDeadline(time.Time{})
	if _, err := io.WriteString(guest, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(upstream, io.MultiReader(io.LimitReader(buffered, int64(buffered.Reader.Buffered())), guest))
		shut()
	})
	_, _ = io.Copy(guest, upstream)
	shut()
	up.Wait()
}

// forward forwards one plain HTTP request. It returns redirects to the guest.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	out, err := http.NewRequestWithContext(r.Context(), r.Method, (&url.URL{Scheme: "http", Host: r.URL.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}).String(), http.NoBody)
	if err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	for _, name := range []string{"Accept", "Accept-Encoding", "Authorization", "Cache-Control", "If-Modified-Since", "If-None-Match", "Range", "User-Agent"} {
		if values := r.Header.Values(name); len(values) > 0 {
			out.Header[name] = values
		}
	}
	response, err := p.transport.RoundTrip(out)
	if err != nil {
		p.writeDialError(w, r.URL.Host, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	for name, values := range response.Header {
		if name != "Connection" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		panic(http.ErrAbortHandler) // cuts the connection, so that half a file is not taken for a whole one
	}
}

func (p *Proxy) writeDialError(w http.ResponseWriter, address string, err error) {
	p.log.Warn("install: index not reached", "host", sanitize.Line(address, 200), "error", sanitize.Line(err.Error(), 200))
	status, text := http.StatusBadGateway, "the index does not answer"
	if errors.Is(err, errPrivate) {
		status, text = http.StatusForbidden, errPrivate.Error()
	}
	http.Error(w, text, status)
}

// meteredConn counts transferred bytes and enforces the idle timeout.
type meteredConn struct {
	net.Conn
	proxy *Proxy
}

// Read returns errExhausted when the byte limit is used up.
func (m *meteredConn) Read(b []byte) (int, error) {
	if m.proxy.Exhausted() {
		return 0, errExhausted
	}
	_ = m.SetReadDeadline(time.Now().Add(m.proxy.idle))
	n, err := m.Conn.Read(b)
	m.proxy.down.Add(-int64(n))
	return n, err
}

// Write returns errExhausted when the byte limit is used up.
func (m *meteredConn) Write(b []byte) (int, error) {
	if m.proxy.up.Add(-int64(len(b))) < 0 {
		return 0, errExhausted
	}
	_ = m.SetWriteDeadline(time.Now().Add(m.proxy.idle))
	return m.Conn.Write(b)
}
