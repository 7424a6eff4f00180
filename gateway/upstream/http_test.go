package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// site is a real streamable HTTP server whose doings a test can watch and change.
type site struct {
	*httptest.Server
	handler   atomic.Pointer[http.Handler]
	server    atomic.Pointer[mcp.Server]
	cancelled atomic.Int32 // slow calls that saw their context end
	mu        sync.Mutex
	before    func(w http.ResponseWriter, r *http.Request, body string) (done bool)
	methods   []string
	missing   int // requests without the key
}

func newSite(t *testing.T, opts *mcp.StreamableHTTPOptions) *site {
	t.Helper()
	s := &site{}
	s.restart(opts)
	s.Server = tlstest.NewServer(t, http.HandlerFunc(s.serve))
	return s
}

// restart replaces the server by one that knows none of its sessions.
func (s *site) restart(opts *mcp.StreamableHTTPOptions) {
	server := mcp.NewServer(&mcp.Implementation{Name: "site", Version: "2"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	addEcho(server, "echo")
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{Name: "number", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: json.RawMessage(`{"z":9007199254740993,"a":1}`)}, nil
	})
	server.AddTool(&mcp.Tool{Name: "slow", InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-ctx.Done():
			s.cancelled.Add(1)
		case <-time.After(10 * time.Second):
		}
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "grow", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addEcho(server, "grown")
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	})
	var handler http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts)
	s.handler.Store(&handler)
	if old := s.server.Swap(server); old != nil {
		for session := range old.Sessions() {
			_ = session.Close()
		}
	}
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	s.mu.Lock()
	before := s.before
	s.methods = append(s.methods, r.Method)
	if r.Header.Get("Authorization") != "Bearer hunter2-hunter2" {
		s.missing++
	}
	s.mu.Unlock()
	if before == nil || !before(w, r, string(body)) {
		(*s.handler.Load()).ServeHTTP(w, r)
	}
}

func (s *site) intercept(before func(w http.ResponseWriter, r *http.Request, body string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *site) redirect(target string) {
	s.intercept(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		move := r.URL.Path == "/mcp"
		if move {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		}
		return move
	})
}

func (s *site) settings() upstream.Settings {
	return upstream.Settings{ID: "web", URL: s.URL + "/mcp?key=hunter2-in-url", Headers: map[string]string{
		"Authorization": "Bearer hunter2-hunter2", "Accept": "nonsense",
	}}
}

func TestHTTP(t *testing.T) {
	for name, opts := range map[string]*mcp.StreamableHTTPOptions{
		"2026-07-28": {Stateless: true, PropagateRequestCancellation: true},
		"2025-11-25": {},
	} {
		for _, asJSON := range []bool{false, true} {
			opts.JSONResponse = asJSON
			t.Run(fmt.Sprintf("%s json=%v", name, asJSON), func(t *testing.T) {
				web := newSite(t, opts)
				cfg := web.settings()
				cfg.Timeout = 300 * time.Millisecond
				s := open(t, cfg, nil)
				if got := call(t, s, "echo", `{"a":9007199254740993}`).Text(); got != `{"a":9007199254740993}` {
					t.Errorf("echo: %s", got)
				}
				if got := call(t, s, "number", "").Structured; string(got) != `{"z":9007199254740993,"a":1}` {
					t.Errorf("number: %s", got)
				}
				if state := s.State(); state.Protocol != name || state.ServerName != "site" || state.Tools != 4 {
					t.Errorf("state: %+v", state)
				}
				_, err := callContext(t.Context(), s, "slow", "")
				wantError(t, err, tool.Timeout, "web.slow")
				testutil.Eventually(t, "the handler is cancelled", soon, func() bool { return web.cancelled.Load() == 1 })
				web.mu.Lock()
				defer web.mu.Unlock()
				if web.missing != 0 {
					t.Errorf("%d requests came without the key: %v", web.missing, web.methods)
				}
			})
		}
	}
}

func TestHTTPListChanged(t *testing.T) {
	web := newSite(t, nil)
	lists := make(chan int, 10)
	s := open(t, web.settings(), &upstream.Options{OnOffer: func(offer tool.Offer) { lists <- len(offer.Tools) }})
	call(t, s, "grow", "")
	for _, want := range []int{4, 5} {
		select {
		case got := <-lists:
			if got != want {
				t.Errorf("%d tools, want %d", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no list of %d tools", want)
		}
	}
	call(t, s, "grown", "{}")
}

// A change of the tools that the server could not notify, because its stream was not open yet, is seen when the stream is.
func TestHTTPListChangedBeforeStream(t *testing.T) {
	web := newSite(t, nil)
	release := make(chan struct{})
	web.intercept(func(_ http.ResponseWriter, r *http.Request, _ string) bool {
		if r.Method == http.MethodGet {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return false
	})
	lists := make(chan int, 10)
	s := open(t, web.settings(), &upstream.Options{OnOffer: func(offer tool.Offer) { lists <- len(offer.Tools) }})
	call(t, s, "grow", "")
	if got := <-lists; got != 4 {
		t.Errorf("%d tools at first", got)
	}
	time.Sleep(3 * time.Second) // a notification would have been here
	close(release)
	select {
	case got := <-lists:
		if got != 5 {
			t.Errorf("%d tools", got)
		}
	case <-time.After(time.Minute):
		t.Error("no list of 5 tools")
	}
}

// A server that has forgotten the session did not act on the call, whatever the
// tool: it is sent again in a new session.
func TestHTTPServerForgetsSession(t *testing.T) {
	web := newSite(t, nil)
	s := open(t, web.settings(), nil)
	call(t, s, "echo", "{}")
	web.restart(nil)
	call(t, s, "echo", "{}")
}

// What was under way when the session was lost may have had its effect, and is not sent again.
func TestHTTPSessionLostUnderWay(t *testing.T) {
	web := newSite(t, nil)
	s := open(t, web.settings(), nil)
	call(t, s, "echo", "{}")
	begun := make(chan struct{})
	var calls atomic.Int32
	web.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		if !strings.Contains(body, "tools/call") {
			return false
		}
		switch calls.Add(1) {
		case 1:
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			close(begun)
			<-r.Context().Done()
		case 2:
			http.Error(w, "no such session", http.StatusNotFound)
		default:
			return false
		}
		return true
	})
	first := make(chan error)
	go func() {
		_, err := callContext(t.Context(), s, "echo", `{"first":true}`)
		first <- err
	}()
	<-begun
	call(t, s, "echo", `{"second":true}`)
	wantError(t, <-first, tool.Upstream, "no longer knows the session", "may or may not have taken effect")
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls arrived, want the first once and the second twice", n)
	}
	web.intercept(nil)
	web.restart(nil) // the lost session is not deleted
}

func TestHTTPServerGone(t *testing.T) {
	web := newSite(t, nil)
	s := open(t, web.settings(), nil)
	call(t, s, "echo", "{}")
	web.CloseClientConnections()
	web.Close()
	_, err := callContext(t.Context(), s, "echo", "")
	wantError(t, err, tool.Upstream)
	wantError(t, s.Connect(t.Context()), tool.Upstream, "connection refused")
	wantError(t, s.Connect(t.Context()), tool.Upstream, "connection refused", "next attempt in")
}

func TestHTTPErrorStatus(t *testing.T) {
	web := newSite(t, nil)
	web.intercept(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		http.Error(w, "who are you? Bearer hunter2-hunter2", http.StatusUnauthorized)
		return true
	})
	s := open(t, web.settings(), nil)
	want := "upstream web needs authorization: HTTP 401 Unauthorized (check its Authorization header)"
	wantError(t, s.Connect(t.Context()), tool.Denied, want)
	if state := s.State(); state.Status != upstream.Parked || state.Login || state.Error != want {
		t.Errorf("state: %+v", state)
	}
}

// One call that is refused must not end the others.
func TestHTTPStatusHurtsOneCallOnly(t *testing.T) {
	web := newSite(t, nil)
	for _, status := range []int{400, 413, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) { poisonedCall(t, web, status) })
	}
}

func poisonedCall(t *testing.T, web *site, status int) {
	t.Helper()
	web.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		refuse := strings.Contains(body, "poison")
		if refuse {
			http.Error(w, "<html>no</html>", status)
		}
		return refuse
	})
	cfg := web.settings()
	cfg.Timeout = 250 * time.Millisecond
	s := open(t, cfg, nil)
	call(t, s, "echo", "{}")
	slow := make(chan error)
	go func() {
		_, err := callContext(t.Context(), s, "slow", "")
		slow <- err
	}()
	_, err := callContext(t.Context(), s, "echo", `{"a":"poison"}`)
	wantError(t, err, tool.Upstream, fmt.Sprintf("web.echo: upstream failed: HTTP %d %s", status, http.StatusText(status)))
	wantError(t, <-slow, tool.Timeout, "web.slow")
	call(t, s, "echo", "{}")
}

func TestHTTPSilentOnDiscover(t *testing.T) {
	web := newSite(t, nil)
	web.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		silent := strings.Contains(body, "server/discover")
		if silent {
			<-r.Context().Done()
		}
		return silent
	})
	s := open(t, web.settings(), &upstream.Options{ProbeTimeout: 100 * time.Millisecond})
	call(t, s, "echo", "{}")
	if got := s.State().Protocol; got != "2025-11-25" {
		t.Errorf("revision %s", got)
	}
}

func TestHTTPRedirect(t *testing.T) {
	var strays atomic.Int32
	other := tlstest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strays.Add(1) }))
	defer other.Close()
	web := newSite(t, nil)
	web.redirect("/there")
	s := open(t, web.settings(), nil)
	call(t, s, "echo", "{}")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	web.mu.Lock()
	if web.missing != 0 {
		t.Error("redirected on the same origin, the key got lost")
	}
	web.mu.Unlock()
	web.redirect(other.URL + "/?key=1")
	s = open(t, web.settings(), nil)
	wantError(t, s.Connect(t.Context()), tool.Upstream, "redirects to "+other.URL+", which is another origin")
	if strays.Load() != 0 {
		t.Error("the other origin got a request")
	}
}

func TestHTTPAnswerTooLong(t *testing.T) {
	web := newSite(t, nil)
	web.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		flood := strings.Contains(body, "poison")
		if flood {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.Repeat(" ", 65<<20))
		}
		return flood
	})
	s := open(t, web.settings(), nil)
	call(t, s, "echo", "{}")
	_, err := callContext(t.Context(), s, "echo", `{"a":"poison"}`)
	wantError(t, err, tool.Upstream, "more than 64 MiB")
	call(t, s, "echo", "{}")
}

// TestHTTPRetryable: what a server did not take may be sent again, what it may have done not.
func TestHTTPRetryable(t *testing.T) {
	web := newSite(t, nil)
	status := http.StatusTooManyRequests
	web.intercept(func(w http.ResponseWriter, _ *http.Request, body string) bool {
		refuse := strings.Contains(body, "poison")
		if refuse {
			http.Error(w, "no", status)
		}
		return refuse
	})
	s := open(t, web.settings(), nil)
	call(t, s, "echo", "{}")
	for _, test := range []struct {
		status int
		want   bool
	}{{429, true}, {500, false}, {503, false}, {413, false}} {
		status = test.status
		_, err := callContext(t.Context(), s, "echo", `{"poison":1}`)
		if e := wantError(t, err, tool.Upstream); e.Retryable != test.want {
			t.Errorf("%d: %+v", test.status, e)
		}
	}
	web.CloseClientConnections()
	web.Close()
	_, err := callContext(t.Context(), s, "echo", "{}")
	wantError(t, err, tool.Upstream) // it may have got through
	for range 2 {
		_, err := callContext(t.Context(), s, "echo", "{}")
		if e := wantError(t, err, tool.Upstream); !e.Retryable {
			t.Errorf("server gone: %+v", e)
		}
	}
}

// TestHTTPNotDelivered: where each request has a connection of its own, the error of a refused one says so.
func TestHTTPNotDelivered(t *testing.T) {
	web := newSite(t, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	web.Server = httptest.NewUnstartedServer(http.HandlerFunc(web.serve))
	tlstest.StartHTTP1(t, web.Server) // over HTTP/2 requests share a connection
	web.Config.SetKeepAlivesEnabled(false)
	s := open(t, web.settings(), nil)
	call(t, s, "echo", "{}")
	web.CloseClientConnections()
	web.Close()
	_, err := callContext(t.Context(), s, "echo", "{}")
	if e := wantError(t, err, tool.Upstream, "connection refused"); !e.Retryable {
		t.Errorf("%+v", e)
	}
}
