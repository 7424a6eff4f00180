package upstream_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// newOldSite is a real server of HTTP with SSE, which knows nothing newer.
func newOldSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, nil)
	var handler http.Handler = mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s.server.Load() }, nil)
	s.handler.Store(&handler)
	return s
}

func TestSSE(t *testing.T) {
	for _, transport := range []string{"sse", "auto", ""} {
		t.Run("transport "+transport, func(t *testing.T) {
			web := newOldSite(t)
			cfg := web.settings()
			cfg.Transport, cfg.Timeout = transport, 300*time.Millisecond
			lists := make(chan int, 10)
			s := open(t, cfg, &upstream.Options{OnOffer: func(offer tool.Offer) { lists <- len(offer.Tools) }})
			if got := call(t, s, "echo", `{"a":9007199254740993}`).Text(); got != `{"a":9007199254740993}` {
				t.Errorf("echo: %s", got)
			}
			_, err := callContext(t.Context(), s, "slow", "")
			wantError(t, err, tool.Timeout, "web.slow")
			testutil.Eventually(t, "the handler is cancelled", soon, func() bool { return web.cancelled.Load() == 1 })
			call(t, s, "grow", "")
			for _, want := range []int{4, 5} {
				if got := <-lists; got != want {
					t.Errorf("%d tools, want %d", got, want)
				}
			}
			web.mu.Lock()
			defer web.mu.Unlock()
			if web.missing != 0 {
				t.Errorf("%d requests came without the key: %v", web.missing, web.methods)
			}
		})
	}
}

func TestStreamableIsNotSSE(t *testing.T) {
	web := newOldSite(t)
	cfg := web.settings()
	cfg.Transport = "streamable"
	s := open(t, cfg, nil)
	wantError(t, s.Connect(t.Context()), tool.Upstream, "HTTP 4")
}

// A server that is neither is told apart by its own words, and not asked twice as often.
func TestNoMCPServer(t *testing.T) {
	web := newSite(t, nil)
	web.intercept(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		http.NotFound(w, nil)
		return true
	})
	s := open(t, web.settings(), nil)
	wantError(t, s.Connect(t.Context()), tool.Upstream, "cannot connect to upstream web: HTTP 404 Not Found")
	web.intercept(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"only on Sundays"}}`)
		return true
	})
	s.Reset()
	web.mu.Lock()
	web.methods = nil
	web.mu.Unlock()
	wantError(t, s.Connect(t.Context()), tool.Upstream, "only on Sundays")
	web.mu.Lock()
	defer web.mu.Unlock()
	for _, method := range web.methods {
		if method != http.MethodPost {
			t.Errorf("requests are %v: an answer of MCP's own is no reason to try SSE", web.methods)
		}
	}
}

// endpointSite sends one endpoint event and what follows it.
func endpointSite(t *testing.T, endpoint, rest string) upstream.Settings {
	t.Helper()
	server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n%s", endpoint, rest)
		w.(http.Flusher).Flush()
		if rest == "" {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return upstream.Settings{ID: "old", URL: server.URL + "/sse", Transport: "sse", MaxMessage: 100_000}
}

func TestSSEHostile(t *testing.T) {
	var strays atomic.Int32
	other := tlstest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strays.Add(1) }))
	defer other.Close()
	tests := []struct{ endpoint, rest, says string }{
		{other.URL + "/take", "", "messages sent to " + other.URL + ", which is another origin"},
		{"//" + strings.TrimPrefix(other.URL, "https://") + "/take", "", "which is another origin"},
		{"://", "", "names no address"},
		{"/post", "data: " + strings.Repeat("x", 200_000) + "\n\n", "message of more than 100000 bytes"},
		{"/post", strings.Repeat("data: xxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 10_000), "message of more than 100000 bytes"},
		{"/post", "event: ping\ndata: {}\n\n: bye\n\ndata: junk\n\n", "ended the stream"},
	}
	for _, test := range tests {
		s := open(t, endpointSite(t, test.endpoint, test.rest), nil)
		wantError(t, s.Connect(t.Context()), tool.Upstream, test.says)
	}
	if strays.Load() != 0 {
		t.Error("the other origin got a request")
	}
}

func TestSSEStreamBreaks(t *testing.T) {
	web := newOldSite(t)
	s := open(t, web.settings(), nil)
	call(t, s, "echo", "{}")
	web.CloseClientConnections()
	testutil.Eventually(t, "the loss is seen", soon, func() bool { return s.State().Status == upstream.Failed })
	if got := s.State().Error; !strings.Contains(got, "upstream web is down") {
		t.Errorf("state says %q", got)
	}
	call(t, s, "echo", "{}")
}

func TestUnixSocket(t *testing.T) {
	for _, transport := range []string{"streamable", "sse"} {
		t.Run(transport, func(t *testing.T) {
			web := newSite(t, nil)
			if transport == "sse" {
				web = newOldSite(t)
			}
			var host atomic.Value
			web.intercept(func(_ http.ResponseWriter, r *http.Request, _ string) bool {
				host.Store(r.Host)
				return false
			})
			path := filepath.Join(t.TempDir(), "s")
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.HandlerFunc(web.serve), ReadHeaderTimeout: time.Second}
			go func() { _ = server.Serve(listener) }()
			defer server.Close()
			cfg := web.settings()
			cfg.URL, cfg.Socket, cfg.Transport = "http://localhost/mcp", path, transport
			s := open(t, cfg, nil)
			call(t, s, "echo", "{}")
			if host.Load() != "localhost" {
				t.Errorf("host is %v", host.Load())
			}
		})
	}
}

func TestMaxMessage(t *testing.T) {
	pipe := settings(t, "good")
	web := newSite(t, nil)
	old := newOldSite(t)
	for name, cfg := range map[string]upstream.Settings{"stdio": pipe, "streamable": web.settings(), "sse": old.settings()} {
		t.Run(name, func(t *testing.T) {
			cfg.MaxMessage = 200_000
			s := open(t, cfg, nil)
			call(t, s, "echo", `{"a":"`+strings.Repeat("x", 80_000)+`"}`)
			_, err := callContext(t.Context(), s, "echo", `{"a":"`+strings.Repeat("x", 300_000)+`"}`)
			wantError(t, err, tool.Upstream, "200000 bytes")
			call(t, s, "echo", "{}")
		})
	}
}

// Where the stream of the answer is the call, nothing else is sent to cancel it.
func TestCancelClosesTheStream(t *testing.T) {
	web := newSite(t, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	var said atomic.Int32
	web.intercept(func(_ http.ResponseWriter, _ *http.Request, body string) bool {
		if strings.Contains(body, "notifications/cancelled") {
			said.Add(1)
		}
		return false
	})
	cfg := web.settings()
	cfg.Timeout = 200 * time.Millisecond
	s := open(t, cfg, nil)
	_, err := callContext(t.Context(), s, "slow", "")
	wantError(t, err, tool.Timeout)
	testutil.Eventually(t, "the handler is cancelled", soon, func() bool { return web.cancelled.Load() == 1 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if said.Load() != 0 {
		t.Errorf("%d notifications", said.Load())
	}
}
