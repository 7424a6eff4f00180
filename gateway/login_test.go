package gateway_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/tool"
)

// club is a gateway before one upstream that wants tokens of an authorization
// server. Other handlers that use the same folder stand for other processes.
type club struct {
	t    *testing.T
	as   *authserver.Server
	rs   *oauthtest.Resource
	g    *gateway.Gateway
	up   config.Upstream
	dir  string
	late atomic.Int64 // how far the gateway's clock is ahead, in ns
	log  lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func newClub(t *testing.T, rs *oauthtest.Options, change func(up *config.Upstream)) *club {
	t.Helper()
	robot := authserver.Client{ID: "robot", Secret: "s3cret-of-robot", Service: true}
	c := &club{t: t, as: authserver.New(t, &authserver.Options{Clients: []authserver.Client{robot}}), dir: filepath.Join(t.TempDir(), "auth")}
	c.rs = oauthtest.New(t, c.as, rs)
	c.up = upstreamOf("tickets", c.rs.URL)
	c.up.Socket = rs.Socket
	c.up.Timeout = time.Minute // 50 calls at once, with logins between, on a busy machine
	if change != nil {
		change(&c.up)
	}
	cfg := settings(nil)
	cfg.Upstreams = append(cfg.Upstreams, c.up)
	logger := slog.New(slog.NewTextHandler(&c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.g = open(t, cfg, &gateway.Options{Logger: logger, Auth: func(up config.Upstream) upstream.Authorizer {
		return c.handler(up, logger)
	}})
	t.Cleanup(c.noSecrets)
	c.g.Catalog.WaitConnected(t.Context())
	return c
}

func (c *club) handler(up config.Upstream, logger *slog.Logger) *oauth.Handler {
	return oauth.New(oauth.Settings{
		ID: up.ID, URL: up.URL, Socket: up.Socket, Type: up.Auth.Type, Store: "file",
		ClientID: up.Auth.ClientID, ClientSecret: string(up.Auth.ClientSecret),
	}, &oauth.Options{Dir: c.dir, Logger: logger, Now: func() time.Time { return time.Now().Add(time.Duration(c.late.Load())) }})
}

// login is what `sallyport auth login` does in a process of its own.
func (c *club) login(scopes ...string) {
	c.t.Helper()
	if err := c.handler(c.up, nil).Login(c.t.Context(), oauth.Login{Browse: (&authserver.Browser{}).Open, Scopes: scopes}); err != nil {
		c.t.Fatal(err)
	}
}

// works has 50 programs call at once, and wants the server to be asked for that
// grant just so often in all.
func (c *club) works(grant string, times int) {
	c.t.Helper()
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() { c.answers("echo") })
	}
	calls.Wait()
	if got := c.as.Count(grant); got != times {
		c.t.Errorf("%s: %d times, want %d", grant, got, times)
	}
	if reused := c.as.Count("reuse"); reused != 0 {
		c.t.Errorf("a refresh token was used twice")
	}
}

func (c *club) answers(name string) {
	c.t.Helper()
	if result, err := call(c.t, c.g, "tickets."+name, "{}"); err != nil || result.Text() != name+" was here" {
		c.t.Errorf("%s: %q, %v", name, result.Text(), err)
	}
}

// refuses wants a call to fail with an error that says all parts, and what to do once.
func (c *club) refuses(name string, parts ...string) {
	c.t.Helper()
	_, err := call(c.t, c.g, "tickets."+name, "{}")
	wantError(c.t, err, tool.Denied, parts...)
	c.once(err.Error())
}

func (c *club) once(text string) {
	c.t.Helper()
	if n := strings.Count(text, "sallyport auth login") + strings.Count(text, "check client_id"); n != 1 {
		c.t.Errorf("it says %d times what to do: %s", n, text)
	}
}

// parked wants the upstream to wait for a person, with that reason wherever one looks.
func (c *club) parked(parts ...string) {
	c.t.Helper()
	testutil.Eventually(c.t, "it is parked", 5*time.Second, func() bool { return c.state().Status == upstream.Parked })
	state := c.state()
	if !state.Login || time.Until(state.RetryAt) < 30*time.Second {
		c.t.Errorf("state %+v", state)
	}
	c.once(state.Error)
	for _, part := range parts {
		if !strings.Contains(state.Error, part) {
			c.t.Errorf("state says %q, not %q", state.Error, part)
		}
	}
	if found := search(c.t, c.g, toolsearch.Request{}); !strings.Contains(found.Text(), parts[len(parts)-1]) {
		c.t.Errorf("the list of upstreams says %q", found.Text())
	}
}

func (c *club) state() upstream.State { return c.g.Catalog.Upstreams()[0].State }

func (c *club) ready() {
	c.t.Helper()
	testutil.Eventually(c.t, "it is no longer parked", 30*time.Second, func() bool { return c.state().Status != upstream.Parked && len(c.g.Catalog.Tools()) == 4 })
}

// noSecrets looks for tokens (they are JWTs) and the client's secret in the log.
func (c *club) noSecrets() {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	for _, secret := range []string{"eyJ", "s3cret"} {
		if strings.Contains(c.log.String(), secret) {
			c.t.Errorf("the log shows a secret (%s...):\n%s", secret, c.log.String())
		}
	}
}

// TestLoginOverEachTransport goes through all that happens to a login while a gateway runs, over
// each transport.
func TestLoginOverEachTransport(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "gw-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, opts := range map[string]*oauthtest.Options{
		"streamable": {}, "sse": {SSE: true}, "socket": {Socket: filepath.Join(dir, "a")}, "socket with sse": {Socket: filepath.Join(dir, "b"), SSE: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClub(t, opts, nil)
			c.parked("needs authorization", "login required: run `sallyport auth login tickets`")
			c.refuses("echo", "login required: run `sallyport auth login tickets`")
			c.login()
			c.ready()
			c.works("refresh_token", 0)
			c.late.Store(int64(2 * time.Hour)) // tokens live for one
			c.works("refresh_token", 1)
			c.as.RevokeAccess() // before they expire
			c.works("refresh_token", 2)

			c.refuses("admin", "run `sallyport auth login tickets --scope write`")
			c.as.RevokeAccess() // which has nothing to do with the scope that is missing
			c.works("refresh_token", 3)
			c.login("write")
			c.answers("admin")

			c.as.RevokeAll()
			c.refuses("echo", "has expired or was revoked")
			c.parked("revoked: run `sallyport auth login tickets`")
			c.login()
			c.ready()
			c.answers("echo")
			if _, revoked, err := c.handler(c.up, nil).Logout(t.Context()); err != nil || !revoked {
				t.Errorf("logout: %v, %v", revoked, err)
			}
			c.refuses("echo", "login required")
			c.parked("login required: run `sallyport auth login tickets`")
		})
	}
}

// TestLoginServerIsDown: that a token cannot be refreshed now is nothing that a
// person has to mend.
func TestLoginServerIsDown(t *testing.T) {
	t.Parallel()
	c := newClub(t, &oauthtest.Options{}, nil)
	c.login()
	c.ready()
	files, err := filepath.Glob(filepath.Join(c.dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(string(good), c.as.URL+"/oauth/token", "http://127.0.0.1:1/token", 1))
	c.late.Store(int64(2 * time.Hour))
	_, err = call(t, c.g, "tickets.echo", "{}")
	wantError(t, err, tool.Upstream, "get access token: refresh token: ", "connection refused")
	if text := err.Error(); strings.Contains(text, "auth login") || c.state().Status != upstream.Ready {
		t.Errorf("%s: %s", c.state().Status, text)
	}
	write(string(good)) // it is back
	c.works("refresh_token", 1)
}

func robot(secret string) func(up *config.Upstream) {
	return func(up *config.Upstream) {
		up.Auth = config.Auth{Type: "client_credentials", ClientID: "robot", ClientSecret: config.Secret(secret)}
	}
}

func TestLoginOfRobot(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*oauthtest.Options{"streamable": {}, "sse": {SSE: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClub(t, opts, robot("s3cret-of-robot"))
			c.works("client_credentials", 1)
			c.late.Store(int64(2 * time.Hour))
			c.works("client_credentials", 2)
			c.as.RevokeAccess()
			c.works("client_credentials", 3)
			if _, err := os.Stat(c.dir); err == nil {
				t.Error("something was stored")
			}
		})
	}
	t.Run("token refused", func(t *testing.T) {
		t.Parallel()
		other := func(m *oauthex.ProtectedResourceMetadata) { m.Resource = strings.TrimSuffix(m.Resource, "/mcp") }
		c := newClub(t, &oauthtest.Options{Metadata: other}, robot("s3cret-of-robot"))
		c.parked("HTTP 401 Unauthorized", "check client_id and client_secret of upstream tickets")
		if got := c.as.Count("client_credentials"); got != 1 {
			t.Errorf("the server was asked %d times", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		c := newClub(t, &oauthtest.Options{}, robot("s3cret-of-another"))
		c.parked("invalid_client", "check client_id and client_secret of upstream tickets")
		if strings.Contains(c.state().Error, "auth login") {
			t.Errorf("a login would not help: %s", c.state().Error)
		}
	})
}
