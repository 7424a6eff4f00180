package httpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/httpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// sayWho answers with who its context says, and with how much it was sent.
func sayWho(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body did not arrive", http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%s as %q operator %q may execute %t, sent %d", r.URL.Path, tool.Principal(r.Context()), tool.Operator(r.Context()), tool.May(r.Context(), tool.ScopeExecute), len(body))
}

// mcp is a face that speaks no protocol.
type mcp struct{}

func (mcp) Handler() http.Handler { return http.HandlerFunc(sayWho) }
func (mcp) Direct() http.Handler  { return http.HandlerFunc(sayWho) }
func (mcp) Subset(wildcard string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue(wildcard) != "finance" {
			http.NotFound(w, r)
			return
		}
		sayWho(w, r)
	})
}
func (mcp) CloseStreams()         {}
func (mcp) Drain(context.Context) {}
func (mcp) Close()                {}

// serve serves a door until the test ends, and returns its origin.
func serve(t *testing.T, opts *httpserver.Options) string {
	t.Helper()
	return startServer(t, opts, httpserver.New)
}

// hasty is a door that waits for slow clients for 300 ms only.
func hasty(t *testing.T, opts *httpserver.Options) string {
	t.Helper()
	return startServer(t, opts, func(l net.Listener, opts *httpserver.Options) *httpserver.Server {
		return httpserver.NewHasty(l, opts, 300*time.Millisecond)
	})
}

func startServer(t *testing.T, opts *httpserver.Options, open func(net.Listener, *httpserver.Options) *httpserver.Server) string {
	t.Helper()
	if opts.MCP == nil {
		opts.MCP = mcp{}
	}
	if opts.Settings.Body == 0 {
		opts.Settings.Body, opts.Settings.Grace = config.MiB, time.Second
	}
	listener, err := httpserver.Listen(t.Context(), "127.0.0.1:0", opts.Settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	site := open(listener, opts)
	go func() { ended <- site.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return strings.TrimSuffix(httpserver.Address(listener), "/mcp")
}

// answer is the head of a response.
type answer struct {
	StatusCode int
	Header     http.Header
	// Closing says that the connection ends with it.
	Closing bool
}

// request makes one request; headers are "Name: value".
func request(t *testing.T, method, to, body string, headers ...string) (answer, string) {
	t.Helper()
	got := testutil.Request(t, method, to, body, append([]string{"Accept: application/json, text/event-stream"}, headers...)...)
	return answer{got.Status, got.Header, got.Closing}, string(got.Body)
}

func TestWhoMaySpeak(t *testing.T) {
	t.Parallel()
	settings := config.HTTP{Body: 4096, Grace: time.Second, Origins: []string{"https://app.example"}, Hosts: []string{"gw.example"}}
	origin := serve(t, &httpserver.Options{Settings: settings})
	for _, test := range []struct {
		headers []string
		status  int
	}{
		{nil, 200},
		{[]string{"Host: evil.example"}, 403},
		{[]string{"Host: evil.example:80"}, 403},
		{[]string{"Host: localhost.evil.example"}, 403},
		{[]string{"Host: localhost:1"}, 200},
		{[]string{"Host: [::1]:1"}, 200},
		{[]string{"Host: gw.example"}, 200},
		{[]string{"Host: GW.example.:443"}, 200},
		{[]string{"Origin: http://localhost:3000"}, 200},
		{[]string{"Origin: http://127.0.0.1"}, 200},
		{[]string{"Origin: https://app.example"}, 200},
		{[]string{"Origin: https://app.example.evil"}, 403},
		{[]string{"Origin: http://localhost.evil.example"}, 403},
		{[]string{"Origin: http://localhost@evil.example"}, 403},
		{[]string{"Origin: null"}, 403},
		{[]string{"Origin: file://localhost"}, 403},
	} {
		for _, path := range []string{"/mcp", "/mcp/direct", "/mcp/finance"} {
			if resp, body := request(t, "POST", origin+path, "{}", test.headers...); resp.StatusCode != test.status {
				t.Errorf("%v at %s: %d %s", test.headers, path, resp.StatusCode, body)
			}
		}
	}
	resp, _ := request(t, "OPTIONS", origin+"/mcp", "", "Origin: https://app.example", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type")
	if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("preflight: %d %v", resp.StatusCode, resp.Header)
	}
	if resp, body := request(t, "POST", origin+"/mcp", strings.Repeat(" ", 5000)); resp.StatusCode != 413 || !strings.Contains(body, "http.body") {
		t.Errorf("a large body: %d %s", resp.StatusCode, body)
	}
	for path, status := range map[string]int{"/": 200, "/x": 404, "/mcp/x": 404, "/.well-known/oauth-protected-resource": 404, "/debug/pprof/": 404} {
		if resp, body := request(t, "GET", origin+path, ""); resp.StatusCode != status || len(detail(body)) > 60 {
			t.Errorf("GET %s: %d %s", path, resp.StatusCode, body)
		}
	}
}

// detail is what a problem document says, or all of another body.
func detail(body string) string {
	var problem struct{ Detail string }
	if json.Unmarshal([]byte(body), &problem) != nil {
		return body
	}
	return problem.Detail
}

func TestListen(t *testing.T) {
	t.Parallel()
	taken, err := httpserver.Listen(t.Context(), "localhost:0", config.HTTP{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for addr, want := range map[string]string{
		":8080":                "listen on 127.0.0.1:8080, or make tokens: sallyport token create",
		"0.0.0.0:1":            "other machines could reach",
		"[::]:1":               "other machines could reach",
		"8080":                 "write HOST:PORT",
		"unix:":                "needs the path",
		taken.Addr().String():  "another process listens",
		"unix:" + os.Args[0]:   "is not a socket",
		"unix:/no/such/dir/s":  "no such file",
		"no.such.host.test:80": "invalid listen address",
	} {
		if l, err := httpserver.Listen(t.Context(), addr, config.HTTP{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", addr, l, err)
		}
	}
	public, err := httpserver.Listen(t.Context(), "0.0.0.0:0", config.HTTP{Tokens: config.Secrets{"a": "b"}}, nil)
	if err != nil {
		t.Error(err)
	} else {
		_ = public.Close()
	}
}
