package mcpserver_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// newMute returns the URL of a server that accepts connections and never answers.
func newMute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	return "http://" + l.Addr().String()
}

// newGate returns a server that answers nothing before open is called.
func newGate(t *testing.T, s http.Handler) (url string, open func()) {
	t.Helper()
	gate := make(chan struct{})
	web := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
			s.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(web.Close)
	return web.URL, func() { close(gate) }
}

// bearer adds a token to requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// toldClient is a client that counts the notifications of changed lists.
type toldClient struct {
	*mcp.ClientSession
	t    *testing.T
	told chan struct{}
}

func connectTold(t *testing.T, url, token, version string) *toldClient {
	t.Helper()
	c := &toldClient{t: t, told: make(chan struct{}, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.told <- struct{}{} },
	})
	watcher := &streamWatcher{hears: make(chan struct{})}
	var err error
	c.ClientSession, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token, watcher}}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	<-watcher.hears
	return c
}

// list returns the names and descriptions of the tools.
func (c *toldClient) list() (all string) {
	c.t.Helper()
	for def, err := range c.Tools(c.t.Context(), nil) {
		if err != nil {
			c.t.Fatal(err)
		}
		all += def.Name + " " + def.Description + "\n"
	}
	return all
}

// awaitChange waits until the client was told and its list has, or lacks, a text.
func (c *toldClient) awaitChange(what, text string, has bool) {
	c.t.Helper()
	for {
		select {
		case <-c.told:
		case <-time.After(time.Minute):
			c.t.Fatalf("%s: the client was not told", what)
		}
		if strings.Contains(c.list(), text) == has {
			return
		}
	}
}

// TestChangesReachSessions: a first list does not wait for upstreams that do not answer. What they have later, and what changed
// settings add, remove or forbid, is told to the sessions whose lists it changes, and to no others.
func TestChangesReachSessions(t *testing.T) {
	t.Parallel()
	raw := newRawServer(t, oddAnswers())
	late, open := newGate(t, raw)
	cfg := config.Default()
	cfg.Trust = config.TrustAllow
	cfg.HTTP.Tokens = config.Secrets{"ann": "a", "bob": "b"}
	cfg.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Tools: []string{"odd.*"}, When: `principal == "token:bob"`, Then: policy.Deny}}}
	cfg.Upstreams = []config.Upstream{upstream("odd", late, ""), upstream("mute", newMute(t), "")}
	g, err := gateway.Open(&cfg, &gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	face := mcpserver.NewDirect(g.Service(), &mcpserver.DirectOptions{Logger: testutil.Logger(t)})
	tools := mcpserver.New(g.Service(), &mcpserver.Options{Watch: g.Catalog.Watch})
	t.Cleanup(func() {
		face.Close()
		tools.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	url := serve(t, face, &siteOptions{Settings: cfg.HTTP, Tools: tools}) + "/mcp"
	var clients, bobs []*toldClient
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, path := range []string{"", "/direct"} {
			begun := time.Now()
			c := connectTold(t, url+path, "a", version)
			if got := c.list(); strings.Contains(got, "odd__") {
				t.Errorf("listed before it is known: %s", got)
			}
			if took := time.Since(begun); took > 10*time.Second { // listWait, and a slow machine
				t.Errorf("%s %s: the handshake and the first list took %v", version, path, took)
			}
			if path != "" {
				clients = append(clients, c)
			}
		}
		bob := connectTold(t, url+"/direct", "b", version)
		bob.list()
		bobs = append(bobs, bob)
	}
	open()
	for _, c := range clients {
		c.awaitChange("an upstream answers", "odd__odd_tool", true)
	}
	code := connectTold(t, url, "a", "2025-11-25")
	code.list()
	next := cfg
	more := upstream("more", raw.url, "")
	more.Description = "more tools"
	next.Upstreams = append(next.Upstreams[:2:2], more)
	if err := g.Reload(&next); err != nil {
		t.Fatal(err)
	}
	code.awaitChange("an upstream is added, in code mode", "more (more tools)", true)
	for _, c := range append(clients, bobs...) {
		c.awaitChange("an upstream is added", "more__odd_tool", true)
	}
	forbid := next
	forbid.Policy.Rules = append(forbid.Policy.Rules[:1:1], policy.Rule{Tools: []string{"more.*"}, When: `principal == "token:ann"`, Then: policy.Deny})
	before := len(code.told)
	if err := g.Reload(&forbid); err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		c.awaitChange("a rule denies its tools", "more__odd_tool", false)
	}
	if err := g.Reload(&cfg); err != nil {
		t.Fatal(err)
	}
	code.awaitChange("an upstream is removed, in code mode", "more", false)
	for _, bob := range bobs {
		bob.awaitChange("an upstream is removed", "more__odd_tool", false)
		if got := len(bob.told); got != 0 {
			t.Errorf("%d notifications without a change", got)
		}
	}
	if before != 0 {
		t.Errorf("in code mode %d notifications without a change", before)
	}
}
