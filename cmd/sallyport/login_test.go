package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/tlstest"
)

// desk is the built binary that serves over HTTP to a client with a bearer
// token, before three upstreams: tickets wants a login, keyed has a key in the
// settings that its server does not take, and plain takes anybody.
type desk struct {
	t              *testing.T
	binary, config string
	env            []string
	session        *mcp.ClientSession
	tickets, keyed *oauthtest.Resource
	plain          *recorder
}

const clientToken = "a-token-for-a-test" // as withToken sends it

// recorder keeps what an upstream was told of who calls.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) start(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "plain was here"}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.seen = append(r.seen, fmt.Sprint(req.URL, req.Header))
		r.mu.Unlock()
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(func() { _ = web.Config.Close(); web.Close() })
	return web.URL
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	as := authserver.New(t, nil)
	d := &desk{t: t, tickets: oauthtest.New(t, as, nil), keyed: oauthtest.New(t, as, nil), plain: &recorder{}}
	dir, err := os.MkdirTemp("/tmp", "desk-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d.binary, d.config = testutil.Binary(t), filepath.Join(dir, "upstreams.yaml")
	settings := fmt.Sprintf(`upstreams:
  tickets: {url: %q, auth: {store: file}}
  keyed: {url: %q, headers: {Authorization: Bearer key-of-the-settings}}
  plain: {url: %q}
sandbox: {runsc: %q}
http: {tokens: {test: %s}}
`, d.tickets.URL, d.keyed.URL, d.plain.start(t), testutil.Runsc(t), clientToken)
	if err := os.WriteFile(d.config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	d.env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	testutil.ShareSnapshots(filepath.Join(dir, "cache"))
	return d
}

// serve returns a function that ends the gateway and returns its log.
func (d *desk) serve() (stop func() string) {
	d.t.Helper()
	cmd := exec.Command(d.binary, "serve", "--config", d.config, "--http", "127.0.0.1:0")
	cmd.Env = d.env
	url, log := startListening(d.t, cmd)
	d.session = dialHTTP(d.t, url, "2025-11-25")
	return func() string {
		_ = d.session.Close()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			d.t.Error(err)
		}
		text := <-log
		if err := cmd.Wait(); err != nil {
			d.t.Errorf("serve ended with %v:\n%s", err, text)
		}
		return text
	}
}

// sallyport runs the binary while a gateway runs.
func (d *desk) sallyport(args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), d.binary, append(args, "--config", d.config)...)
	cmd.Env = d.env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		d.t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

func (d *desk) program(code string) string {
	d.t.Helper()
	text, err := callHTTP(d.t.Context(), d.session, &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": code}})
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

func (d *desk) says(what, text string, parts ...string) {
	d.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			d.t.Errorf("%s: no %q in:\n%s", what, part, text)
		}
	}
}

const callTickets = "from servers.tickets import echo\necho()"

// TestLoginBesideServe logs in and out with the built binary while it serves, in
// another process of it.
func TestLoginBesideServe(t *testing.T) {
	testutil.Long(t)
	d := newDesk(t)
	stop := d.serve()
	const missing = "run `sallyport auth login tickets`"
	d.says("a program", d.program(callTickets), "tickets", missing)
	for _, verb := range []string{"tools", "doctor"} {
		d.says(verb, d.sallyport(verb), missing, "check its Authorization header")
	}
	d.says("login", d.sallyport("auth", "login", "tickets"), "logged in to tickets")
	d.says("status", d.sallyport("auth", "status"), "logged in")
	begin := time.Now()
	for text := ""; !strings.Contains(text, "echo was here"); text = d.program(callTickets) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("still after a login: %s", text)
		}
	}
	t.Logf("it works %v after the login", time.Since(begin).Round(10*time.Millisecond))
	d.says("step up", d.program("from servers.tickets import admin\nadmin()"), "run `sallyport auth login tickets --scope write`")
	d.says("plain", d.program("from servers.plain import hello\nhello()"), "plain was here")
	d.says("logout", d.sallyport("auth", "logout", "tickets"), "its tokens are revoked")
	d.says("a program", d.program(callTickets), "login required: "+missing)
	log := stop()
	for _, secret := range []string{"eyJ", clientToken, "key-of-the-settings"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log shows a secret (%.5s...):\n%s", secret, log)
		}
	}
	d.whoWasTold()
}

// whoWasTold looks at what the upstreams were told: never the token of the
// client, and where the settings have a key nothing but that.
func (d *desk) whoWasTold() {
	d.t.Helper()
	if len(d.plain.seen) == 0 || strings.Contains(fmt.Sprint(d.plain.seen), "Authorization") || strings.Contains(fmt.Sprint(d.plain.seen), clientToken) {
		d.t.Errorf("plain was told %q", d.plain.seen)
	}
	for _, r := range d.tickets.Requests() {
		if strings.Contains(fmt.Sprint(r), clientToken) {
			d.t.Errorf("tickets was told %v", r)
		}
	}
	keyed := d.keyed.Requests()
	for _, r := range keyed {
		if r.Path != "/mcp" || r.Authorization != "Bearer key-of-the-settings" {
			d.t.Errorf("keyed was told %v", r)
		}
	}
	if len(keyed) == 0 {
		d.t.Error("nobody asked keyed")
	}
}
