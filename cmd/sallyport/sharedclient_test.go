package main_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// balance is a load balancer in front of gateways. It sends all requests to the one of use.
func balance(t *testing.T) (origin string, use func(s *flowsSite)) {
	t.Helper()
	var to atomic.Pointer[url.URL]
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to.Load()) }}
	web := httptest.NewServer(proxy)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL, func(s *flowsSite) {
		at, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		to.Store(at)
	}
}

// replaceSettings replaces a part of the settings.
func (s *flowsSite) replaceSettings(t *testing.T, old, now string) {
	t.Helper()
	path := filepath.Join(s.dir, "upstreams.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), old, now, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestClientOfCluster has two gateways behind a load balancer. The gateway of a client with a session is killed: the client continues at
// the other one without noticing, with the same tools, and with the files of its workspace.
func TestClientOfCluster(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	one, two := newSharedSite(t, c, c.Creds), newSharedSite(t, c, c.Creds)
	sealSites(t, one, two)
	for _, s := range []*flowsSite{one, two} {
		s.replaceSettings(t, "sandbox: {", "sandbox: {typecheck: false, runsc: "+testutil.Runsc(t)+", ")
	}
	one.serve(t)
	two.serve(t)
	origin, use := balance(t)
	use(one)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: origin + "/mcp", HTTPClient: &http.Client{Transport: bearer(flowsToken)}}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	list := func() string {
		t.Helper()
		tools, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := json.Marshal(tools)
		return string(data)
	}
	execute := func(code string) (string, error) {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"language": "python", "code": code}})
		if err != nil {
			return "", err
		}
		text := r.Content[0].(*mcp.TextContent).Text
		if r.IsError {
			return "", errors.New(text)
		}
		return text, nil
	}
	tools := list()
	if out, err := execute("open('/workspace/note.txt', 'w').write('from the first')"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if err := one.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.cmd.Wait() // killed
	use(two)
	testutil.Eventually(t, "the client is served again", time.Minute, func() bool {
		out, err := execute("open('/workspace/note.txt').read()")
		return err == nil && strings.Contains(out, "from the first")
	})
	if again := list(); again != tools {
		t.Errorf("the tools were\n%s\nand are\n%s", tools, again)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := stop(two.cmd); err != nil {
		t.Error(err)
	}
}
