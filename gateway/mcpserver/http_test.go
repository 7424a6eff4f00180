package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/httpserver"
	"sallyport/gateway/mcpserver"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// upstreams is a gateway in memory: what it offers, and what a call of it does.
type upstreams struct {
	offers []catalog.UpstreamOffer
	call   func(ctx context.Context, call tool.Call) (tool.Result, error)
}

func (u *upstreams) AlwaysDenied(context.Context, tool.ID) bool { return false }

func (u *upstreams) Await(context.Context, string)   {}
func (u *upstreams) Offers() []catalog.UpstreamOffer { return u.offers }
func (u *upstreams) Watch(func()) func()             { return func() {} }
func (u *upstreams) Upstreams() []catalog.Upstream   { return nil }
func (u *upstreams) Search(context.Context, toolsearch.Request) (toolsearch.Found, error) {
	return toolsearch.Found{}, nil
}

func (u *upstreams) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return u.call(ctx, call)
}

// Execute takes as long as the program says.
func (u *upstreams) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	select {
	case <-time.After(p.Timeout):
		return execution.Result{}, &tool.Error{Kind: tool.Failed, Message: "it ran"}
	case <-ctx.Done():
		return execution.Result{}, tool.AsError(ctx.Err())
	}
}

// offering is one upstream with tools of these names.
func offering(id string, names ...string) catalog.UpstreamOffer {
	up := catalog.UpstreamOffer{ID: id, Name: id}
	for i, name := range tool.Identifiers(names) {
		quoted, _ := json.Marshal(names[i]) // a string always can be
		raw := json.RawMessage(fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, quoted))
		up.Offer.Tools = append(up.Offer.Tools, tool.Tool{ID: tool.ID{Upstream: id, Name: name}, Wire: names[i], Raw: raw})
	}
	return up
}

func newDirectOn(t *testing.T, verbs mcpserver.Gateway, wireNames bool) *mcpserver.Direct {
	t.Helper()
	face := mcpserver.NewDirect(verbs, &mcpserver.DirectOptions{WireNames: wireNames, Logger: testutil.Logger(t)})
	t.Cleanup(face.Close)
	return face
}

// answer is the head of a response.
type answer struct {
	StatusCode int
	Header     http.Header
}

// request makes one request; headers are "Name: value".
func request(t *testing.T, method, to, body string, headers ...string) (answer, string) {
	t.Helper()
	got := testutil.Request(t, method, to, body, append([]string{"Accept: application/json, text/event-stream"}, headers...)...)
	return answer{got.Status, got.Header}, string(got.Body)
}

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

func TestTokens(t *testing.T) {
	t.Parallel()
	odd := newRawServer(t, oddAnswers())
	d := newDirect(t, false, upstream("odd", odd.url, ""))
	settings := config.HTTP{Body: config.MiB, Grace: time.Second, Tokens: config.Secrets{"ci": "s3cret", "ada": "0ther"}}
	d.url = serve(t, d.face, &siteOptions{Settings: settings}) + "/mcp"
	for _, bad := range [][]string{nil, {"Authorization: Bearer s3cre"}, {"Authorization: Bearer "}, {"Authorization: Basic s3cret"}, {"Authorization: Bearer ci"}} {
		if resp, body := request(t, "POST", d.url, initializeBody, bad...); resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(body, "ci") {
			t.Errorf("%v: %d %s", bad, resp.StatusCode, body)
		}
	}
	good, other := "Authorization: Bearer s3cret", "Authorization: Bearer 0ther"
	resp, _ := request(t, "POST", d.url, initializeBody, good)
	if challenge := resp.Header.Get("WWW-Authenticate"); challenge != "" {
		t.Errorf("a good token is answered with %s", challenge)
	}
	session := "Mcp-Session-Id: " + resp.Header.Get("Mcp-Session-Id")
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"odd__odd_tool","arguments":{}}}`
	for _, method := range []string{"POST", "GET", "DELETE"} { // another's session is as one that there is not
		theirs, said := request(t, method, d.url, list, session, other, "Accept: application/json, text/event-stream")
		none, saidOfNone := request(t, method, d.url, list, "Mcp-Session-Id: none", other, "Accept: application/json, text/event-stream")
		if theirs.StatusCode != 404 || none.StatusCode != 404 || said != saidOfNone || theirs.Header.Get("Content-Type") != none.Header.Get("Content-Type") {
			t.Errorf("%s: another's session: %d %q, none: %d %q", method, theirs.StatusCode, said, none.StatusCode, saidOfNone)
		}
	}
	if resp, body := request(t, "POST", d.url, list, session, good); resp.StatusCode != 200 || !strings.Contains(body, "hologram") {
		t.Errorf("our session: %d %s", resp.StatusCode, body)
	}
	if _, headers := odd.last("tools/call"); headers.Get("Authorization") != "" {
		t.Errorf("the upstream got %v", headers)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "s-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "mcp.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	listener, err := httpserver.Listen(t.Context(), "unix:"+path, config.HTTP{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info, err)
	}
	if _, err := httpserver.Listen(t.Context(), "unix:"+path, config.HTTP{}, nil); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("twice: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	site := newFront(listener, newDirectOn(t, &upstreams{}, false), &siteOptions{Settings: config.HTTP{Body: config.MiB}})
	go func() { ended <- site.Serve(ctx) }()
	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "x"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://any.name/mcp", HTTPClient: web}, nil)
	if err != nil {
		t.Error(err)
	} else {
		_ = session.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestStopping lets a call end that is quick enough, and ends one that is not.
func TestStopping(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, grace := range []time.Duration{10 * time.Second, 50 * time.Millisecond} {
			running, finish := make(chan struct{}), make(chan struct{})
			verbs := &upstreams{offers: []catalog.UpstreamOffer{offering("up", "slow")}, call: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				close(running)
				select {
				case <-finish:
					return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"finished"}]}`)}, nil
				case <-ctx.Done():
					return tool.Result{}, tool.AsError(ctx.Err())
				}
			}}
			listener, err := httpserver.Listen(t.Context(), "127.0.0.1:0", config.HTTP{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			site := newFront(listener, newDirectOn(t, verbs, false), &siteOptions{Settings: config.HTTP{Body: config.MiB, Grace: grace}})
			go func() { ended <- site.Serve(ctx) }()
			c := (&direct{t: t, url: httpserver.Address(listener)}).dialogue(version)
			answer := make(chan string, 1)
			go func() { answer <- c.ask("tools/call", `{"name":"up__slow","arguments":{}}`) }()
			<-running
			stop()
			want := "finished"
			if grace < time.Second {
				want = "stopping"
			} else {
				wait(t, "the listener closes", func() bool {
					conn, err := net.Dial("tcp", listener.Addr().String())
					if err == nil {
						_ = conn.Close()
					}
					return err != nil
				})
				close(finish)
			}
			if got := <-answer; !strings.Contains(got, want) {
				t.Errorf("%s with %v: %s", version, grace, got)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}

// TestDisconnect ends the call of a modern client at once.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	running, ended := make(chan struct{}), make(chan error, 1)
	verbs := &upstreams{offers: []catalog.UpstreamOffer{offering("up", "slow")}, call: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		close(running)
		<-ctx.Done()
		ended <- ctx.Err()
		return tool.Result{}, ctx.Err()
	}}
	to := serve(t, newDirectOn(t, verbs, false), &siteOptions{}) + "/mcp"
	ctx, cancel := context.WithCancel(t.Context())
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__slow","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "up__slow"} {
		req.Header.Set(name, value)
	}
	go func() {
		<-running
		cancel()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("ended without a reason")
		}
	case <-time.After(time.Minute):
		t.Error("the call goes on")
	}
}
