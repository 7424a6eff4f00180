package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// errStalled says that a registry sent nothing for too long.
var errStalled = errors.New("the registry stopped sending")

// maxResponse is the maximum size in bytes of responses that are not blobs. The library reads them into memory.
const maxResponse = 8 << 20

// maxRedirects is the maximum number of redirects of one request.
const maxRedirects = 5

// newTransport returns a transport to a registry that limits the time and size of responses,
// and refuses redirects to this machine or to the metadata service of a cloud.
func newTransport(registry name.Registry, limits Limits) http.RoundTripper {
	local := localRegistry(registry)
	dialer := &net.Dialer{Timeout: 30 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return checkAddress(address, local)
	}}
	return &boundedTransport{limits: limits, inner: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: limits.Stall, MaxResponseHeaderBytes: 1 << 20, DisableKeepAlives: true,
	}}
}

// localRegistry reports whether the registry, or the proxy to it, is on this machine.
func localRegistry(registry name.Registry) bool {
	host := registry.RegistryStr()
	request, err := http.NewRequest(http.MethodGet, registry.Scheme()+"://"+host, nil) //nolint:noctx // it is not sent
	if err != nil {
		return false
	}
	if proxy, err := http.ProxyFromEnvironment(request); err == nil && proxy != nil {
		return isLocal(proxy.Hostname())
	}
	return isLocal(request.URL.Hostname())
}

func isLocal(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && address.Unmap().IsLoopback()
}

// checkAddress checks the resolved address of a connection.
func checkAddress(address string, local bool) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	ip := parsed.Addr().Unmap()
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip.IsLoopback() && !local {
		return fmt.Errorf("connect to %s: the address is not allowed for a registry", ip)
	}
	return nil
}

type boundedTransport struct {
	limits Limits
	inner  http.RoundTripper
}

// RoundTrip limits the length of the response body, and the time between two reads of it.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if redirects(request) > maxRedirects {
		return nil, errors.New("too many redirects")
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	answer, err := t.inner.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	limit := t.limits.Bytes
	if strings.Contains(request.URL.Path, "/manifests/") || answer.StatusCode != http.StatusOK {
		limit = maxResponse
	}
	body := &boundedBody{inner: answer.Body, left: limit, stall: t.limits.Stall, cancel: cancel}
	body.timer = time.AfterFunc(t.limits.Stall, func() { cancel(errStalled) })
	body.timer.Stop() // runs only during Read
	body.cause = func() error { return context.Cause(ctx) }
	answer.Body = body
	return answer, nil
}

// redirects counts the redirects that led to a request. The library follows all of them.
func redirects(request *http.Request) int {
	n := 0
	for ; request.Response != nil && request.Response.Request != nil && n <= maxRedirects; n++ {
		request = request.Response.Request
	}
	return n
}

type boundedBody struct {
	inner  io.ReadCloser
	left   int64
	stall  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
	cause  func() error
}

func (b *boundedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	defer b.timer.Stop()
	if b.left <= 0 {
		if n, _ := b.inner.Read(make([]byte, 1)); n > 0 {
			return 0, fmt.Errorf("%w: the registry's answer does not end", ErrTooLarge)
		}
		return 0, io.EOF
	}
	n, err := b.inner.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := b.cause(); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.inner.Close()
}
