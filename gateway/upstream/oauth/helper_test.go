package oauth_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
)

// world is an authorization server, an MCP server that wants its tokens, and a folder for them.
type world struct {
	t    *testing.T
	as   *authserver.Server
	rs   *oauthtest.Resource
	dir  string
	late atomic.Int64 // how far the handlers' clock is ahead, in ns
}

func newWorld(t *testing.T, as *authserver.Options, rs *oauthtest.Options) *world {
	t.Helper()
	w := &world{t: t, as: authserver.New(t, as), dir: filepath.Join(t.TempDir(), "auth")}
	w.rs = oauthtest.New(t, w.as, rs)
	return w
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.late.Load())) }

func (w *world) settings() oauth.Settings {
	return oauth.Settings{ID: "tickets", URL: w.rs.URL, Store: "file"}
}

func (w *world) handler(change func(s *oauth.Settings)) *oauth.Handler {
	s := w.settings()
	if change != nil {
		change(&s)
	}
	return oauth.New(s, &oauth.Options{Dir: w.dir, Logger: testutil.Logger(w.t), Now: w.now})
}

// login logs in as a person would.
func (w *world) login(h *oauth.Handler, scopes ...string) {
	w.t.Helper()
	if err := w.tryLogin(h, &authserver.Browser{}, scopes...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryLogin(h *oauth.Handler, b *authserver.Browser, scopes ...string) error {
	return h.Login(w.t.Context(), oauth.Login{Browse: b.Open, Scopes: scopes})
}

// connect is a whole MCP client.
func (w *world) connect(h *oauth.Handler) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(w.t.Context(), &mcp.StreamableClientTransport{Endpoint: w.rs.URL, OAuthHandler: h, DisableStandaloneSSE: true, MaxRetries: -1}, nil)
	if err == nil {
		w.t.Cleanup(func() { session.Close() })
	}
	return session, err
}

// works calls a tool through the handler.
// session logs in and connects.
func (w *world) session(h *oauth.Handler) *mcp.ClientSession {
	w.t.Helper()
	w.login(h)
	session, err := w.connect(h)
	if err != nil {
		w.t.Fatal(err)
	}
	return session
}

func (w *world) callEcho(h *oauth.Handler) {
	w.t.Helper()
	session, err := w.connect(h)
	if err != nil {
		w.t.Fatalf("connect: %v", err)
	}
	if err := callTool(w.t.Context(), session, "echo"); err != nil {
		w.t.Fatalf("call: %v", err)
	}
}

func callTool(ctx context.Context, session *mcp.ClientSession, name string) error {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name})
	if err == nil && result.Content[0].(*mcp.TextContent).Text != name+" was here" {
		return errors.New("another answer")
	}
	return err
}

func wantText(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v\ndoes not say %q", err, text)
		}
	}
}

func wantLogin(t *testing.T, err error, texts ...string) {
	t.Helper()
	e, ok := errors.AsType[*oauth.LoginError](err)
	if !ok || !e.NeedsLogin() {
		t.Errorf("error %v does not ask for a login", err)
	}
	wantText(t, err, texts...)
}

// file is the one that holds the login.
func (w *world) file() string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "*.json"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("files of logins: %v, %v", found, err)
	}
	return found[0]
}

func (w *world) readStored() string {
	w.t.Helper()
	text, err := os.ReadFile(w.file())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// count compares how often the server was asked for something.
func (w *world) count(what string, want int) {
	w.t.Helper()
	if got := w.as.Count(what); got != want {
		w.t.Errorf("%s: %d times, want %d", what, got, want)
	}
}

func set(name, value string) func(*url.URL) {
	return func(back *url.URL) {
		query := back.Query()
		query.Set(name, value)
		if value == "" {
			query.Del(name)
		}
		back.RawQuery = query.Encode()
	}
}
