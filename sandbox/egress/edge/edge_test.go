package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/sandbox/egress/edge"
)

func TestMain(m *testing.M) { os.Exit(tlstest.M{Tests: m}.Run()) }

const token = "T0ken-of-the-host"

// host is a real host, with what it has received.
type host struct {
	server *httptest.Server
	mu     sync.Mutex
	seen   []string // host, target and credentials of each request
	events chan string
}

// newHost returns a host with a certificate for these names.
func newHost(t *testing.T, names ...string) *host {
	t.Helper()
	h := &host{events: make(chan string)}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Proto, " ", r.Header.Values("Authorization"), " ", r.Header.Get("X-Other"))
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Echo", r.Header.Get("Authorization")) })
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for event := range h.events {
			_, _ = io.WriteString(w, event)
			_ = http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("/copy", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	mux.HandleFunc("/socket", socket)
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen = append(h.seen, r.Host+" "+r.RequestURI+" "+strings.Join(r.Header.Values("Authorization"), ","))
		h.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	h.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlstest.StartAs(t, h.server, names...)
	t.Cleanup(h.server.Close)
	return h
}

// socket answers an upgrade to the protocol that is asked for, and sends back what comes.
func socket(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		_, _ = io.WriteString(w, "no upgrade")
		return
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
	_, _ = io.Copy(c, rw)
}

// got returns what the host has received.
func (h *host) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

// fixture is an edge before a host.
type fixture struct {
	authority *edge.Authority
	edge      *edge.Edge
	address   string
	mu        sync.Mutex
	reasons   []string
}

func newFixture(t *testing.T, dial func(ctx context.Context) (net.Conn, error)) *fixture {
	t.Helper()
	authority, err := edge.NewAuthority([]string{"api.test"})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{authority: authority}
	f.edge, err = authority.New(edge.Options{
		Name: "api.test", Port: 443, Header: map[string]string{"authorization": "Bearer " + token}, Connections: 8, Dial: dial,
		Refused: func(reason string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.reasons = append(f.reasons, reason)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.edge.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	f.address = listener.Addr().String()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go f.edge.Serve(c)
		}
	}()
	return f
}

// to dials a host, whatever its name.
func to(h *host) func(ctx context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", h.server.Listener.Addr().String())
	}
}

// all returns the reasons of refusals.
func (f *fixture) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reasons)
}

func (f *fixture) refused(reason string) bool { return slices.Contains(f.all(), reason) }

// config trusts the authority of the sandbox only.
func (f *fixture) config(protocols ...string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.authority.PEM())
	return &tls.Config{RootCAs: roots, ServerName: "api.test", NextProtos: protocols, MinVersion: tls.VersionTLS12}
}

// client is an ordinary client in the sandbox.
func (f *fixture) client(t *testing.T, h2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: f.config(), ForceAttemptHTTP2: h2, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", f.address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// raw sends text over TLS and returns what comes until the connection ends.
func (f *fixture) raw(t *testing.T, text string) string {
	t.Helper()
	c, err := tls.Dial("tcp", f.address, f.config("http/1.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(c)
	return string(got)
}

// reply is an answer that was read.
type reply struct {
	status, major int
	echo, body    string
}

func do(t *testing.T, client *http.Client, request *http.Request) reply {
	t.Helper()
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.ProtoMajor, answer.Header.Get("X-Echo"), string(body)}
}

func get(t *testing.T, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.test"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRequests checks what a host gets of the requests of an ordinary client, and the client of its answers.
func TestRequests(t *testing.T) {
	t.Parallel()
	h := newHost(t, "api.test")
	f := newFixture(t, to(h))
	for _, h2 := range []bool{false, true} {
		client := f.client(t, h2)
		r := get(t, "/a%2Fb?x=1;y&z=%zz")
		r.Header["AUTHORIZATION"], r.Header["authorization"] = []string{"mine"}, []string{"other", "again"}
		r.Header["X-Other"] = []string{"kept"}
		got := do(t, client, r)
		if want := "HTTP/2.0 [Bearer " + token + "] kept"; got.body != want || (got.major == 2) != h2 {
			t.Errorf("HTTP/2 %v: %+v, want %q", h2, got, want)
		}
		if want := "api.test /a%2Fb?x=1;y&z=%zz Bearer " + token; !slices.Contains(h.got(), want) {
			t.Errorf("HTTP/2 %v: %q, want %q", h2, h.got(), want)
		}
		if got := do(t, client, get(t, "/echo")); got.echo != "[secret]" {
			t.Errorf("an echo in the header: %q", got.echo)
		}
		large := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		r = get(t, "/copy")
		r.Method, r.Body = http.MethodPut, io.NopCloser(bytes.NewReader(large))
		if got := do(t, client, r); got.body != string(large) {
			t.Errorf("HTTP/2 %v: %d of %d bytes came back", h2, len(got.body), len(large))
		}
	}
	answer, err := f.client(t, false).Do(get(t, "/events"))
	if err != nil {
		t.Fatal(err)
	}
	events := bufio.NewReader(answer.Body)
	for _, event := range []string{"data: one\n", "data: two\n"} { // the next is sent when the one before has come
		h.events <- event
		if got, err := events.ReadString('\n'); got != event {
			t.Fatalf("event %q, %v", got, err)
		}
	}
	close(h.events)
	_ = answer.Body.Close()
	if reasons := f.all(); len(reasons) > 0 {
		t.Error(reasons)
	}
}

// TestUpgrade checks that a connection can become a WebSocket, and nothing else.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	f := newFixture(t, to(newHost(t, "api.test")))
	for protocol, want := range map[string]string{"websocket": "101", "h2c": "200", "other": "200"} {
		c, err := tls.Dial("tcp", f.address, f.config("http/1.1"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = fmt.Fprintf(c, "GET /socket HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
		answers := bufio.NewReader(c)
		answer, err := http.ReadResponse(answers, nil) //nolint:bodyclose // the connection is closed
		if err != nil || !strings.HasPrefix(answer.Status, want) {
			t.Fatalf("%s: %v, %v", protocol, answer, err)
		}
		if want == "101" {
			_, _ = io.WriteString(c, "ping\n")
			if got, err := answers.ReadString('\n'); got != "ping\n" {
				t.Errorf("%s: %q, %v", protocol, got, err)
			}
		}
		_ = c.Close()
	}
}

// TestGames checks that a request reaches the host with the field, and no other place, whatever it is.
func TestGames(t *testing.T) {
	t.Parallel()
	h := newHost(t, "api.test")
	f := newFixture(t, to(h))
	const end = "Connection: close\r\n\r\n"
	for name, test := range map[string]struct{ text, want, reason string }{
		"another Host":       {"GET / HTTP/1.1\r\nHost: other.test\r\n" + end, "421", edge.ReasonHost},
		"a port":             {"GET / HTTP/1.1\r\nHost: api.test:8443\r\n" + end, "421", edge.ReasonHost},
		"no Host":            {"GET / HTTP/1.0\r\n" + end, "421", edge.ReasonHost},
		"two Hosts":          {"GET / HTTP/1.1\r\nHost: api.test\r\nHost: other.test\r\n" + end, "400", ""},
		"an absolute target": {"GET https://other.test/ HTTP/1.1\r\nHost: api.test\r\n" + end, "421", edge.ReasonHost},
		"its own target":     {"GET https://api.test/ HTTP/1.1\r\nHost: api.test\r\n" + end, "421", edge.ReasonHost},
		"a tunnel":           {"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n" + end, "421", edge.ReasonMethod},
		"a trace":            {"TRACE / HTTP/1.1\r\nHost: api.test\r\n" + end, "421", edge.ReasonMethod},
		"a removed field":    {"GET / HTTP/1.1\r\nHost: api.test\r\naUthorization: x\r\nConnection: close, Authorization\r\n\r\n", "[Bearer " + token + "]", ""},
		"a space":            {"GET / HTTP/1.1\r\nHost: api.test\r\nAuthorization : x\r\n" + end, "400", ""},
		"a second request":   {"GET / HTTP/1.1\r\nHost: api.test\r\n\r\nGET / HTTP/1.1\r\nHost: other.test\r\n" + end, "421", edge.ReasonHost},
		"two lengths":        {"POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: other.test\r\n" + end, "400", ""},
		"length and chunks":  {"POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: other.test\r\n" + end, "", ""},
		"a trailer":          {"POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\nConnection: close\r\n\r\n0\r\nAuthorization: x\r\n\r\n", "[Bearer " + token + "]", ""},
		"a large head":       {"GET / HTTP/1.1\r\nHost: api.test\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 100) + end, "431", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.raw(t, test.text)
			if !strings.Contains(got, test.want) || test.reason != "" && !f.refused(test.reason) {
				t.Errorf("%q, want %s; %v", got, test.want, f.all())
			}
			if test.reason != "" && !strings.Contains(got, "sallyport: "+test.reason) {
				t.Errorf("%q does not say %q", got, test.reason)
			}
		})
	}
	for _, seen := range h.got() {
		if !strings.HasPrefix(seen, "api.test / Bearer "+token) {
			t.Errorf("the host got %q", seen)
		}
	}
}

// TestHandshakes checks which handshakes fail, and the reasons.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, to(newHost(t, "api.test")))
	other := f.config()
	other.ServerName = "other.test"
	old := f.config()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for name, test := range map[string]struct {
		client func(c net.Conn) error
		reason string
	}{
		"a program with other authorities": {tlsClient(&tls.Config{ServerName: "api.test"}), edge.ReasonUntrusted + " (bad certificate)"},
		"a program that closes": {func(c net.Conn) error {
			return errors.Join(tls.Client(c, f.config()).Handshake(), c.Close(), io.EOF)
		}, edge.ReasonSilent},
		"another name":   {tlsClient(other), edge.ReasonSNI},
		"an old version": {tlsClient(old), edge.ReasonHandshake},
		"no TLS": {func(c net.Conn) error {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
			got, _ := io.ReadAll(c)
			return fmt.Errorf("%q", got)
		}, edge.ReasonTLS},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", f.address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if err := test.client(c); err == nil {
				t.Error("it succeeded")
			}
			testutil.Eventually(t, "the refusal "+test.reason, time.Minute, func() bool { return f.refused(test.reason) })
		})
	}
}

func tlsClient(config *tls.Config) func(c net.Conn) error {
	return func(c net.Conn) error { return tls.Client(c, config).Handshake() }
}

// TestHosts checks that a host without a valid certificate gets no request, and what is said.
func TestHosts(t *testing.T) {
	t.Parallel()
	wrong := newHost(t, "other.test")
	unknown := newFixture(t, func(context.Context) (net.Conn, error) { return nil, errors.New("it got a request") })
	broken := func(context.Context) (net.Conn, error) {
		c, other := net.Pipe()
		return c, other.Close()
	}
	for name, test := range map[string]struct {
		dial         func(ctx context.Context) (net.Conn, error)
		says, reason string
	}{
		"another name": {to(wrong), "it is for another name", edge.ReasonCertificate + ": it is for another name"},
		"an unknown authority": {func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", unknown.address)
		}, "its authority is unknown", edge.ReasonCertificate + ": its authority is unknown"},
		"no answer":         {broken, edge.ReasonFailed, edge.ReasonFailed},
		"a refused address": {func(context.Context) (net.Conn, error) { return nil, errors.New("it is private") }, "sallyport: it is private", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.dial)
			got := do(t, f.client(t, true), get(t, "/"))
			if got.status != http.StatusBadGateway || !strings.Contains(got.body, test.says) || test.reason != "" && !f.refused(test.reason) || test.reason == "" && len(f.all()) > 0 {
				t.Errorf("%+v; %v", got, f.all())
			}
		})
	}
	if got := wrong.got(); len(got) > 0 {
		t.Errorf("a host with another certificate got %q", got)
	}
}

// TestAuthority checks that the authority of a sandbox vouches for its hosts only.
func TestAuthority(t *testing.T) {
	t.Parallel()
	h := newHost(t, "api.test")
	f := newFixture(t, to(h))
	c, err := tls.Dial("tcp", f.address, f.config())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	leaf, roots := c.ConnectionState().PeerCertificates[0], f.config().RootCAs
	if err := leaf.VerifyHostname("other.test"); err == nil || leaf.IsCA {
		t.Error("the certificate is for another host, or for further certificates")
	}
	root := c.ConnectionState().VerifiedChains[0][1]
	if !root.PermittedDNSDomainsCritical || !slices.Equal(root.PermittedDNSDomains, []string{"api.test"}) || len(root.ExcludedIPRanges) != 2 || !root.MaxPathLenZero {
		t.Errorf("the authority is not limited: %+v", root)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "api.test"}); err != nil {
		t.Error(err)
	}
	if bytes.Contains(f.authority.PEM(), []byte("PRIVATE")) {
		t.Error("the key is given away")
	}
	if _, err := f.authority.New(edge.Options{Name: "other.test"}); err == nil {
		t.Error("an edge for another host")
	}
}

// TestClose checks that the end of an edge ends requests and connections.
func TestClose(t *testing.T) {
	t.Parallel()
	h := newHost(t, "api.test")
	f := newFixture(t, to(h))
	answer, err := f.client(t, true).Do(get(t, "/events"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	f.edge.Close()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the answer continues")
	}
	close(h.events)
	c, err := net.Dial("tcp", f.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := tls.Client(c, f.config()).Handshake(); err == nil {
		t.Error("a closed edge takes a connection")
	}
}
