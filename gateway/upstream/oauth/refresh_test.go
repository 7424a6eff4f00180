package oauth_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil/authserver"
)

func TestRefreshOnce(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	w.login(h)
	w.late.Store(int64(2 * time.Hour)) // a token lives for one
	tokens := w.together(t, []*oauth.Handler{h}, 50)
	if len(tokens) != 1 {
		t.Errorf("%d different tokens", len(tokens))
	}
	w.count("refresh_token", 1)
	w.callEcho(h)
	w.count("refresh_token", 1)
}

// Handlers that share nothing but the folder stand for processes.
func TestRefreshOnceAcrossHandlers(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login(w.handler(nil))
	w.late.Store(int64(2 * time.Hour))
	many := []*oauth.Handler{w.handler(nil), w.handler(nil), w.handler(nil), w.handler(nil)}
	if tokens := w.together(t, many, 50); len(tokens) != 1 {
		t.Errorf("%d different tokens", len(tokens))
	}
	w.count("refresh_token", 1)
	w.count("reuse", 0)
}

// together asks for a token n times at once.
func (w *world) together(t *testing.T, handlers []*oauth.Handler, n int) map[string]bool {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	tokens, start := map[string]bool{}, make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			token, err := handlers[i%len(handlers)].Token(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			tokens[token] = true
		})
	}
	close(start)
	all.Wait()
	return tokens
}

const (
	innerDir = "SALLYPORT_TEST_OAUTH_DIR"
	innerURL = "SALLYPORT_TEST_OAUTH_URL"
)

// Real processes, each of which finds the token expired.
func TestRefreshOnceAcrossProcesses(t *testing.T) {
	if dir := os.Getenv(innerDir); dir != "" {
		h := oauth.New(oauth.Settings{ID: "tickets", URL: os.Getenv(innerURL), Store: "file"},
			&oauth.Options{Dir: dir, Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
		token, err := h.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("length", len(token))
		return
	}
	w := newWorld(t, nil, nil)
	w.login(w.handler(nil))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRefreshOnceAcrossProcesses$")
			cmd.Env = append(os.Environ(), innerDir+"="+w.dir, innerURL+"="+w.rs.URL)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "length") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	w.count("refresh_token", 1)
	w.callEcho(w.handler(nil))
}

// The server takes a token back: one refresh by force, for all who are refused.
func TestRefusedTokenIsRefreshed(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	session := w.session(h)
	w.as.RevokeAccess()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := callTool(t.Context(), session, "echo"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.count("refresh_token", 1)
}

func TestRevokedLoginNeedsLogin(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	session := w.session(h)
	w.as.RevokeAll()
	wantLogin(t, callTool(t.Context(), session, "echo"), "has expired or was revoked: run `sallyport auth login tickets`")
	if status, _ := h.Status(); status.LoggedIn || !strings.Contains(status.Ended, "revoked") {
		t.Errorf("status %+v", status)
	}
	_, err := w.connect(h)
	wantLogin(t, err, "revoked")
	w.count("refresh_token", 1) // there is no second request

	w.login(w.handler(nil)) // in another process
	w.callEcho(h)
}

// Somebody who has a copy of an old refresh token uses it: the server ends the
// login, and so do we.
func TestReuseOfRefreshTokenEndsLogin(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	w.login(h)
	old := w.readStored()
	w.as.RevokeAccess()
	w.callEcho(h)
	current := w.readStored()
	if old == current {
		t.Fatal("nothing was rotated")
	}
	w.restore(old)
	w.as.RevokeAccess()
	_, err := w.connect(w.handler(nil))
	wantLogin(t, err, "has expired or was revoked")
	w.count("reuse", 1)
	w.restore(current)
	_, err = w.connect(w.handler(nil))
	wantLogin(t, err, "has expired or was revoked")
}

func (w *world) restore(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.file(), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// An authorization server that is down is no reason to log in again.
func TestRefreshWhileServerIsDown(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	w.login(h)
	w.restore(strings.Replace(w.readStored(), w.as.URL+"/oauth/token", "http://127.0.0.1:1/token", 1))
	w.late.Store(int64(time.Hour - 10*time.Second)) // soon, but not yet
	if _, err := h.Token(t.Context()); err != nil {
		t.Errorf("while the token is good: %v", err)
	}
	w.late.Store(int64(2 * time.Hour))
	_, err := h.Token(t.Context())
	wantText(t, err, "refresh token", "connection refused")
	if _, ok := errors.AsType[*oauth.LoginError](err); ok {
		t.Error("it asks for a login")
	}
}

func TestStepUp(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	session := w.session(h)
	wantLogin(t, callTool(t.Context(), session, "admin"), "run `sallyport auth login tickets --scope write`")
	w.login(w.handler(nil), "write")
	if err := callTool(t.Context(), session, "admin"); err != nil {
		t.Error(err)
	}
	if status, _ := h.Status(); strings.Join(status.Scopes, " ") != "read offline_access write" {
		t.Errorf("scopes %v", status.Scopes)
	}
}

// With a browser of its own, a client's refusals lead to logins.
func TestAuthorizeByItself(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := oauth.New(w.settings(), &oauth.Options{Dir: w.dir, Browse: (&authserver.Browser{}).Open})
	session, err := w.connect(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"echo", "admin"} {
		if err := callTool(t.Context(), session, name); err != nil {
			t.Error(err)
		}
	}
	w.count("authorization_code", 2)
}

func TestClientCredentials(t *testing.T) {
	clients := []authserver.Client{
		{ID: "robot", Secret: "s3cret basic+%", Service: true},
		{ID: "post", Secret: "s3cret", Post: true, Service: true},
	}
	for _, c := range clients {
		t.Run(c.ID, func(t *testing.T) {
			w := newWorld(t, &authserver.Options{Clients: clients}, nil)
			h := w.handler(func(s *oauth.Settings) {
				s.Type, s.ClientID, s.ClientSecret = "client_credentials", c.ID, c.Secret
			})
			w.callEcho(h)
			w.callEcho(h)
			w.count("client_credentials", 1)
			w.late.Store(int64(2 * time.Hour))
			if tokens := w.together(t, []*oauth.Handler{h}, 50); len(tokens) != 1 {
				t.Errorf("%d different tokens", len(tokens))
			}
			w.count("client_credentials", 2)
			w.as.RevokeAccess()
			w.callEcho(h)
			w.count("client_credentials", 3)
			if _, err := os.Stat(w.dir); err == nil {
				t.Error("something was stored")
			}
		})
	}
}

func TestClientCredentialsRefused(t *testing.T) {
	w := newWorld(t, &authserver.Options{Clients: []authserver.Client{{ID: "robot", Secret: "right", Service: true}}}, nil)
	h := w.handler(func(s *oauth.Settings) { s.Type, s.ClientID, s.ClientSecret = "client_credentials", "robot", "wr0ng" })
	_, err := w.connect(h)
	wantLogin(t, err, "invalid_client", "check client_id and client_secret of upstream tickets")
	if strings.Contains(err.Error(), "wr0ng") {
		t.Error("the error shows the secret")
	}
	wantText(t, w.tryLogin(h, &authserver.Browser{}), "uses client credentials and needs no login")
}

// A token is for one endpoint: other settings under the same id do not find it.
func TestTokenStaysWithItsResource(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.login(w.handler(nil))
	other := oauthtest.New(t, w.as, nil)
	h := w.handler(func(s *oauth.Settings) { s.URL = other.URL })
	if token, err := h.Token(t.Context()); token != "" || err != nil {
		t.Errorf("token of %d bytes, %v", len(token), err)
	}
	// Nor does a file that was renamed to fit.
	text := w.readStored()
	w.login(h)
	if token, err := h.Token(t.Context()); token == "" || err != nil {
		t.Fatal(err)
	}
	for _, name := range w.files() {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.handler(func(s *oauth.Settings) { s.URL = other.URL }).Token(t.Context())
	wantText(t, err, "the stored login is not for tickets")
}

// A token that was issued for another server is not taken: the audience is real.
func TestWrongResource(t *testing.T) {
	w := newWorld(t, nil, nil)
	other := oauthtest.New(t, w.as, nil)
	h := w.handler(nil)
	w.login(h)
	w.restore(strings.ReplaceAll(w.readStored(), w.rs.URL, other.URL))
	stolen := strings.ReplaceAll(w.readStored(), other.URL+`",`, w.rs.URL+`",`)
	w.restore(strings.Replace(stolen, `"resource": "`+w.rs.URL, `"resource": "`+other.URL, 1))
	w.late.Store(int64(2 * time.Hour))
	_, err := h.Token(t.Context())
	wantText(t, err, "invalid_target")
}
