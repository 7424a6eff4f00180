package oauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/tlsfiles"
	"sallyport/internal/weburl"
)

// scopePattern matches the scopes of the RFC without characters that are special in shells.
var scopePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+@*=,~-]{0,199}$`)

// guard checks the URLs and addresses that an upstream refers to. The upstream's own
// URL is trusted, as it is from the settings.
type guard struct {
	host     string
	loopback bool
}

func newGuard(endpoint string) guard {
	u, err := url.Parse(endpoint)
	if err != nil {
		return guard{}
	}
	return guard{host: u.Hostname(), loopback: weburl.IsLoopback(u.Hostname())}
}

// check allows https, and http to a loopback address if the upstream is on one.
func (g guard) check(what, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("its %s is not a URL", what)
	case u.User != nil:
		return fmt.Errorf("its %s holds credentials", what)
	case weburl.IsLoopback(u.Hostname()) && !g.loopback:
		return fmt.Errorf("its %s is on this machine, where the upstream is not", what)
	case u.Scheme == "https", u.Scheme == "http" && weburl.IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("its %s is not https", what)
}

// client returns an HTTP client with a timeout and checked redirects. Without a
// transport in base it also checks the addresses that it connects to.
func (g guard) client(base *http.Client, s Settings) *http.Client {
	c := &http.Client{Timeout: 30 * time.Second, CheckRedirect: g.redirect}
	if !s.TLS.IsSet() {
		c.Transport = g.transport(base, s, nil, nil)
		return c
	}
	c.Transport = &lateTransport{open: func() (http.RoundTripper, error) {
		own, referred, err := tlsConfigs(s.TLS)
		if err != nil {
			return nil, err
		}
		return g.transport(base, s, own, referred), nil
	}}
	return c
}

// transport returns the transport of a client. own is for the upstream itself, referred for the servers that it refers to.
func (g guard) transport(base *http.Client, s Settings, own, referred *tls.Config) (t http.RoundTripper) {
	if base != nil && base.Transport != nil {
		t = base.Transport
	} else {
		t = &roundTripper{
			direct:  transport((&net.Dialer{Timeout: 10 * time.Second, ControlContext: g.dial}).DialContext, nil, referred),
			proxied: transport((&net.Dialer{Timeout: 10 * time.Second}).DialContext, http.ProxyFromEnvironment, referred),
		}
	}
	if s.Socket != "" || s.TLS.IsSet() {
		t = asCalls(s, own, t)
	}
	return t
}

// tlsConfigs returns the configurations for the upstream itself and for the servers that it refers to.
func tlsConfigs(files tlsfiles.Files) (own, referred *tls.Config, err error) {
	if own, err = files.Config(); err == nil {
		referred, err = files.ReferredConfig()
	}
	if fault, ok := errors.AsType[*tlsfiles.Fault](err); ok {
		err = fmt.Errorf("its tls.%s cannot be used: %w", fault.Key, err)
	}
	return own, referred, err
}

// lateTransport opens its transport at the first request. If the files of the transport cannot be read, the request fails, and
// the next one tries again.
type lateTransport struct {
	open func() (http.RoundTripper, error)

	mu     sync.Mutex
	opened http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (l *lateTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t, err := l.transport()
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // nothing was read from it
		}
		return nil, err
	}
	return t.RoundTrip(req)
}

func (l *lateTransport) transport() (t http.RoundTripper, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		l.opened, err = l.open()
	}
	return l.opened, err
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

func transport(dial dialFunc, proxy func(*http.Request) (*url.URL, error), secure *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy: proxy, DialContext: dial, TLSClientConfig: secure, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
}

// roundTripper checks addresses only of direct connections: a proxy decides itself
// what can be reached.
type roundTripper struct{ direct, proxied *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy != nil {
		return r.proxied.RoundTrip(req)
	}
	return r.direct.RoundTrip(req)
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (r *roundTripper) CloseIdleConnections() {
	r.direct.CloseIdleConnections()
	r.proxied.CloseIdleConnections()
}

// asCalls sends requests to the upstream itself as its calls are: through its Unix socket, and with its own authorities and
// client certificate. All others go through other.
func asCalls(s Settings, secure *tls.Config, other http.RoundTripper) http.RoundTripper {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	dial, proxy := dialer.DialContext, http.ProxyFromEnvironment
	if s.Socket != "" {
		proxy = nil
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", s.Socket)
		}
	}
	origin, err := url.Parse(s.URL)
	if err != nil {
		return other // no request matches
	}
	return byOrigin{origin: origin, own: transport(dial, proxy, secure), other: other}
}

type byOrigin struct {
	origin     *url.URL
	own, other http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b byOrigin) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == b.origin.Scheme && strings.EqualFold(req.URL.Host, b.origin.Host) {
		return b.own.RoundTrip(req)
	}
	return b.other.RoundTrip(req)
}

var errRedirect = errors.New("redirect not allowed")

func (g guard) redirect(next *http.Request, via []*http.Request) error {
	last := via[len(via)-1].URL
	switch {
	case len(via) >= 5:
		return errors.New("too many redirects")
	case next.Method != http.MethodGet && next.Method != http.MethodHead, next.Body != nil:
		return http.ErrUseLastResponse // its body may contain a secret
	case last.Scheme == "https" && next.URL.Scheme != "https":
		return errRedirect
	}
	if err := g.check("redirect", next.URL.String()); err != nil {
		return errRedirect
	}
	if ip, err := netip.ParseAddr(next.URL.Hostname()); err == nil && isPrivate(ip) && !g.isPrivateUpstream(next.Context()) {
		return errRedirect
	}
	return nil
}

// dial checks the resolved address of a connection.
func (g guard) dial(ctx context.Context, _, address string, _ syscall.RawConn) error {
	port, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	ip := port.Addr().Unmap()
	switch {
	case ip.IsLoopback() && !g.loopback:
		return errors.New("a public upstream must not redirect to this machine")
	case isPrivate(ip) && !g.isPrivateUpstream(ctx):
		return errors.New("a public upstream must not redirect to a private address")
	}
	return nil
}

// isPrivateUpstream reports whether the upstream itself is in a private network, or on this machine.
func (g guard) isPrivateUpstream(ctx context.Context) bool {
	if g.loopback {
		return true
	}
	if strings.HasSuffix(g.host, ".localhost") {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", g.host)
	if err != nil || len(ips) == 0 {
		return false
	}
	for _, ip := range ips {
		if !isPrivate(ip.Unmap()) {
			return false
		}
	}
	return true
}

// isSharedSpace reports whether ip is in the shared address space of RFC 6598, which netip does not count as private.
func isSharedSpace(ip netip.Addr) bool {
	b := ip.As4()
	return b[0] == 100 && b[1]&0xc0 == 64
}

func isPrivate(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip.Is4() && isSharedSpace(ip)
}
