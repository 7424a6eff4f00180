package connections_test

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/connections"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// keyServer is an MCP server that knows its users by the value of a header.
type keyServer struct {
	header  string
	url     string
	without atomic.Int64 // requests without the header
	notes   atomic.Int64 // calls of note

	mu    sync.Mutex
	users map[string]string // by the value of the header
}

// newKeyServer serves the users by that header: whoami returns the user, note counts, echo returns the header.
func newKeyServer(t *testing.T, header string, users map[string]string) *keyServer {
	t.Helper()
	s := &keyServer{header: header, users: users}
	server := mcp.NewServer(&mcp.Implementation{Name: "keys", Version: "1"}, nil)
	answer := func(name string, text func(value string) string) {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: name}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text(req.Extra.Header.Get(header))}}}, nil, nil
		})
	}
	answer("whoami", s.user)
	answer("note", func(string) string { s.notes.Add(1); return "noted" })
	answer("echo", func(value string) string { return "you sent <" + value + ">" })
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value := r.Header.Get(header)
		if value == "" {
			s.without.Add(1)
		}
		if s.user(value) == "" {
			http.Error(w, "no such key: "+value, http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

func (s *keyServer) user(value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users[value]
}

// revoke makes the server refuse a key.
func (s *keyServer) revoke(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, value)
}

// newKeyHouse is a gateway before that server, with more in its auth.
func newKeyHouse(t *testing.T, s *keyServer, wait, auth string) *house {
	t.Helper()
	h, opts := &house{t: t}, &gateway.Options{}
	setShared(&opts.Auth, h.authorizer)
	h.open("upstreams:\n  tickets: {url: "+s.url+", auth: {type: key, per: principal, store: file"+auth+"}}\n  other: {url: http://127.0.0.1:9/mcp, auth: {per: principal}}\napproval: {wait: "+wait+"}\n", opts)
	return h
}

// setShared sets the logins that all share. A is the type of [gateway.Options], which this package must not import.
func setShared[A any](set *func(config.Upstream) A, login func(config.Upstream, string) oauth.Authorizer) {
	*set = func(up config.Upstream) A {
		a, _ := login(up, "").(A) // each is one
		return a
	}
}

// save stores the key of a principal.
func (h *house) save(who, key string) {
	h.t.Helper()
	if _, err := h.g.Connections.Connect(h.of(who), "tickets", connections.How{Key: key}); err != nil {
		h.t.Fatalf("%s: %v", who, err)
	}
}

// TestEachHasItsOwnKey: the calls of principals have keys of their own, in the header of the settings, and never one that shows. One
// that the server refuses is asked for again, and a call waits for it.
func TestEachHasItsOwnKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, header, auth, ada, bob, adaSent, bobSent string }{
		{"bearer", "Authorization", "", "key-of-ada", "key-of-bob", "Bearer key-of-ada", "Bearer key-of-bob"},
		{"scheme", "Authorization", ", header: authorization", "Token key-of-ada", "Basic key-of-bob", "Token key-of-ada", "Basic key-of-bob"},
		{"own header", "X-Api-Key", ", header: x-api-key", "key-of-ada", "key-of-bob", "key-of-ada", "key-of-bob"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newKeyServer(t, test.header, map[string]string{test.adaSent: "ada", test.bobSent: "bob"})
			h := newKeyHouse(t, s, "30s", test.auth)
			h.save("token:ada", " "+test.ada+"\n") // as it is pasted
			h.save("token:bob", test.bob)
			var calls sync.WaitGroup
			for range 10 {
				calls.Go(func() { h.is("token:ada", "ada") })
				calls.Go(func() { h.is("token:bob", "bob") })
			}
			calls.Wait()
			for _, who := range []string{"token:ada", "token:bob"} {
				if got, err := h.call(h.of(who), "echo"); err != nil || !strings.Contains(got, "you sent <") || strings.Contains(got, "key-of") {
					t.Errorf("a result with the key: %q, %v", got, err)
				}
			}
			s.revoke(test.adaSent)
			h.waitsForKey("token:ada", test.bob)
			h.is("token:ada", "bob")
			if err := h.g.Connections.Disconnect(h.of("token:ada"), "tickets"); err != nil || h.connected(h.of("token:ada")) || !h.connected(h.of("token:bob")) {
				t.Errorf("the wrong key is gone: %v", err)
			}
			h.is("token:bob", "bob")
			if n := s.without.Load(); n != 0 {
				t.Errorf("%d requests had no key", n)
			}
			h.audited("upstream.login token:ada", "upstream.login token:bob", "upstream.login token:ada", "upstream.logout token:ada")
			h.wantPrivate("key-of-ada")
		})
	}
}

// waitsForKey makes a call with a key that the server refuses, sees that the key has ended, and saves a new one.
func (h *house) waitsForKey(who, key string) {
	h.t.Helper()
	answered := make(chan error, 1)
	go func() {
		_, err := h.call(h.of(who), "note")
		answered <- err
	}()
	testutil.Eventually(h.t, "the key has ended", 30*time.Second, func() bool {
		one, err := h.g.Connections.Connection(h.of(who), "tickets")
		return err == nil && one.Key && !one.LoggedIn && one.Ended == "it refused the API key"
	})
	h.save(who, key)
	if err := <-answered; err != nil {
		h.t.Error(err)
	}
}

// wantPrivate wants a key in no file that others can read, and in no file but those of the logins.
func (h *house) wantPrivate(key string) {
	h.t.Helper()
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if info, err := d.Info(); err == nil && strings.Contains(string(data), key) && (filepath.Base(filepath.Dir(path)) != "auth" || info.Mode().Perm() != 0o600) {
			h.t.Errorf("the key is in %s, of mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		h.t.Error(err)
	}
}

// TestKeyIsAsked: a client is asked to open the page where a key is entered. Its call goes on with the key, and is made once. Without an
// answer the error has the page, and nothing was sent.
func TestKeyIsAsked(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, "Authorization", map[string]string{"Bearer key-of-ada": "ada", "Bearer key-of-bob": "bob"})
	h := newKeyHouse(t, s, "0s", "")
	h.save("token:bob", "key-of-bob") // the tools are known
	h.is("token:bob", "bob")
	var saving sync.WaitGroup
	defer saving.Wait()
	p := &peer{open: func(page string) string {
		if page != site+"/ui/connections/tickets" {
			t.Errorf("opens %s", page)
		}
		saving.Go(func() { h.save("token:ada", "key-of-ada") })
		return "accept"
	}}
	note := tool.Call{Tool: tool.ID{Upstream: "tickets", Name: "note"}, Args: []byte(`{}`), Peer: p}
	if result, err := h.g.Call(h.of("token:ada"), note); err != nil || result.IsError || s.notes.Load() != 1 {
		t.Errorf("%s, %v, made %d times", result.Text(), err, s.notes.Load())
	}
	note.Peer = nil
	_, err := h.g.Call(h.of("token:eve"), note)
	want := "upstream tickets needs a login of this user (ask the user to log in at " + site + "/ui/connections/tickets, then make the call again)"
	if e := tool.AsError(err); e.Kind != tool.Denied || e.Error() != want || s.without.Load() != 0 {
		t.Errorf("%v, %d requests without a key\nwant %s", err, s.without.Load(), want)
	}
}

// TestBadKeys: what is no key is not stored, and not shown; a key belongs to an upstream that takes one, and a login to the others.
func TestBadKeys(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t, "Authorization", map[string]string{})
	h := newKeyHouse(t, s, "0s", "")
	for _, key := range []string{"", " \n", "k\r\nX-Evil: 1", "schlüssel", "k\x00", strings.Repeat("k", 4097)} {
		_, err := h.g.Connections.Connect(h.of("token:ada"), "tickets", connections.How{Key: key})
		if e := tool.AsError(err); e.Kind != tool.Invalid || len(key) > 2 && strings.Contains(e.Error(), key) || h.connected(h.of("token:ada")) {
			t.Errorf("%.20q: %v", key, err)
		}
	}
	if _, err := h.g.Connections.Connect(h.of("token:ada"), "other", connections.How{Key: "key"}); tool.AsError(err).Kind != tool.Invalid {
		t.Errorf("a key for an upstream with a login page: %v", err)
	}
	if _, err := h.g.Connections.Connect(h.of("token:ada"), "tickets", connections.How{}); tool.AsError(err).Kind != tool.Invalid {
		t.Errorf("a login page for an upstream that takes a key: %v", err)
	}
	if _, err := h.g.Connections.Connect(t.Context(), "tickets", connections.How{Key: "key"}); tool.AsError(err).Kind != tool.Denied {
		t.Errorf("nobody saves a key for all: %v", err)
	}
}

// TestKeyIsNoToken: after the type in the settings has changed, a stored login is not sent as a key, nor a key as a token.
func TestKeyIsNoToken(t *testing.T) {
	t.Parallel()
	settings := oauth.Settings{ID: "crm", URL: "https://crm.example.com/mcp", Store: "file"}
	opts := &oauth.Options{Dir: filepath.Join(t.TempDir(), "auth")}
	if err := oauth.NewKey(settings, "", opts).Save(t.Context(), "secret-1"); err != nil {
		t.Fatal(err)
	}
	if token, err := oauth.New(settings, opts).Token(t.Context()); err == nil || token != "" {
		t.Errorf("a key is used as a token: %q, %v", token, err)
	}
	if status, err := oauth.New(settings, opts).Status(); err == nil || status.LoggedIn {
		t.Errorf("a key is a login: %+v, %v", status, err)
	}
}
