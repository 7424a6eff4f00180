package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/browser"
)

// bearer sends a token of its own with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

const (
	adaToken = "token-of-ada-for-tests"
	bobToken = "token-of-bob-for-tests"
)

// TestConnections: two people share a gateway, each with a login of its own at an upstream that answers by identity. Bob logs in
// at the dashboard; ada's program begins without a login, her client opens the page, and the program goes on once she has
// logged in, with every call made once.
func TestConnections(t *testing.T) {
	testutil.Long(t)
	rs := oauthtest.New(t, authserver.New(t, nil), nil)
	dir, err := os.MkdirTemp("/tmp", "conn-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, "upstreams.yaml")
	text := fmt.Sprintf("upstreams:\n  tickets: {url: %q, auth: {per: principal, store: file}}\nsandbox: {runsc: %q}\nhttp: {tokens: {ada: %s, bob: %s}}\n",
		rs.URL, testutil.Runsc(t), adaToken, bobToken)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testutil.Binary(t), "serve", "--config", config, "--http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir)
	url, log := startListening(t, cmd)
	chromium := browser.Open(t)

	logIn(t, chromium.Page(t), strings.TrimSuffix(url, "/mcp")+"/ui/connections/tickets", bobToken, "bob")
	bob := dialAs(t, url, bobToken, nil)
	if got, err := callHTTP(t.Context(), bob, program("from servers.tickets import whoami\nwhoami()")); err != nil || !strings.Contains(got, "bob") {
		t.Errorf("bob is %s, %v", got, err)
	}

	var asked []string
	ada := dialAs(t, url, adaToken, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked = append(asked, r.Params.Mode+" "+r.Params.Message)
		page := r.Params.URL
		go logIn(t, chromium.Page(t), page, adaToken, "ada")
		return &mcp.ElicitResult{Action: "accept"}, nil
	})
	got, err := callHTTP(t.Context(), ada, program("from servers.tickets import note, whoami\n[note(), whoami(), note()]"))
	if err != nil || !strings.Contains(got, `["1","ada","2"]`) {
		t.Errorf("ada's program: %s, %v", got, err)
	}
	if want := "url Sallyport: log in to tickets, so that its tools can be called for you."; len(asked) != 1 || asked[0] != want {
		t.Errorf("ada was asked %q", asked)
	}
	if got, err := callHTTP(t.Context(), bob, program("from servers.tickets import whoami\nwhoami()")); err != nil || !strings.Contains(got, "bob") {
		t.Errorf("bob is %s now, %v", got, err)
	}
	if n := rs.Notes.Load(); n != 2 {
		t.Errorf("note was called %d times, want 2", n)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if all := <-log; strings.Contains(all, "eyJ") || strings.Contains(all, "-for-tests") {
		t.Errorf("the log has a token:\n%s", all)
	}
	_ = cmd.Wait()
}

func program(code string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": code}}
}

// dialAs connects a client with a token, which opens URLs if it has a handler.
func dialAs(t *testing.T, url, token string, open func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) *mcp.ClientSession {
	t.Helper()
	opts := &mcp.ClientOptions{ElicitationHandler: open}
	if open != nil {
		opts.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, opts).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// logIn opens the page of a login in a browser without a session: logs in at the gateway, connects, and logs in at the
// authorization server as a user.
func logIn(t *testing.T, p *browser.Page, page, token, user string) {
	t.Helper()
	p.Go(page)
	p.Fill("#token", token)
	if p.Follow("main button.primary"); p.URL() != page {
		t.Errorf("after the login at the gateway: %s", p.URL())
	}
	p.Follow("main button[value=connect]")
	p.Follow("main a.button.primary")
	p.Fill("input[name=user]", user)
	p.Follow("button[value=allow]")
	p.WaitText("body", "Connected to tickets")
	p.Complaints() // the authorization server has no icon
}
