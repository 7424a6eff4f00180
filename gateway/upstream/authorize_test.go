package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// keys is an Authorizer whose tokens are numbered: "token-hunter2-1" is the
// first one that Authorize got.
type keys struct {
	got   atomic.Int32
	asked atomic.Int32
	slow  time.Duration
	fails error
	bad   error // of Token
}

func (k *keys) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if k.got.Load() == 0 && k.bad == nil {
		return nil, nil
	}
	return k, nil
}

func (k *keys) Token() (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: fmt.Sprintf("token-hunter2-%d", k.got.Load())}, k.bad
}

func (k *keys) Authorize(ctx context.Context, _ *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	k.asked.Add(1)
	select {
	case <-time.After(k.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	if k.fails == nil {
		k.got.Add(1)
	}
	return k.fails
}

// demand makes the site refuse what does not carry the token of that number.
func (s *site) demand(number *atomic.Int32) {
	s.intercept(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		ok := r.Header.Get("Authorization") == fmt.Sprintf("Bearer token-hunter2-%d", number.Load())
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="x"`)
			http.Error(w, strings.Repeat("no ", 1000), http.StatusUnauthorized)
		}
		return !ok
	})
}

func (s *site) open() upstream.Settings { return upstream.Settings{ID: "web", URL: s.URL + "/mcp"} }

func TestAuthorize(t *testing.T) {
	for name, build := range map[string]func(*testing.T) *site{
		"streamable": func(t *testing.T) *site { t.Helper(); return newSite(t, nil) }, "sse": newOldSite,
	} {
		t.Run(name, func(t *testing.T) {
			web := build(t)
			var number atomic.Int32
			number.Store(1)
			web.demand(&number)
			k := &keys{slow: 50 * time.Millisecond}
			s := open(t, web.open(), &upstream.Options{Auth: k})
			call(t, s, "echo", "{}")
			if k.asked.Load() != 1 {
				t.Errorf("Authorize was called %d times, want once", k.asked.Load())
			}
			number.Store(2) // the old token is not good any more
			var calls sync.WaitGroup
			for range 20 {
				calls.Go(func() { call(t, s, "echo", "{}") })
			}
			calls.Wait()
			if k.asked.Load() != 2 {
				t.Errorf("Authorize was called %d times after a flood of refusals, want once more", k.asked.Load()-1)
			}
		})
	}
}

// TestSlowAuthorization: the time of an authorization does not count as silence of the upstream, which would be taken for one of an
// old revision.
func TestSlowAuthorization(t *testing.T) {
	t.Parallel()
	web := newSite(t, &mcp.StreamableHTTPOptions{Stateless: true})
	var number atomic.Int32
	number.Store(1)
	web.demand(&number)
	k := &keys{slow: 2 * time.Second}
	s := open(t, web.open(), &upstream.Options{Auth: k, ProbeTimeout: time.Second})
	call(t, s, "echo", "{}")
	if got := s.State().Protocol; got != "2026-07-28" || k.asked.Load() != 1 {
		t.Errorf("revision %s, after %d authorizations", got, k.asked.Load())
	}
}

func TestAuthorizeFails(t *testing.T) {
	remedy := "(a person has to run: sallyport auth login web)"
	tests := map[string]struct {
		auth upstream.Authorizer
		says string
		asks int32
	}{
		"nobody":  {nil, "upstream web needs authorization: HTTP 401 Unauthorized " + remedy, 0},
		"refused": {&keys{fails: loginWanted("no refresh token: run `sallyport auth login web`")}, "upstream web needs authorization: no refresh token: run `sallyport auth login web`", 1},
		"useless": {&keys{}, "upstream web needs authorization: HTTP 401 Unauthorized " + remedy, 1},
		"expired": {&keys{bad: &oauth2.RetrieveError{ErrorCode: "invalid_grant"}, fails: loginWanted("expired: log in")}, "needs authorization: expired: log in", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			web := newSite(t, nil)
			var number atomic.Int32
			number.Store(-1)
			web.demand(&number)
			s := open(t, web.open(), &upstream.Options{Auth: test.auth})
			for range 3 {
				wantError(t, s.Connect(t.Context()), tool.Denied, test.says)
			}
			if state := s.State(); state.Status != upstream.Parked || !state.Login || state.RetryAt.Before(time.Now().Add(50*time.Second)) {
				t.Errorf("state: %+v", state)
			}
			if k, ok := test.auth.(*keys); ok && k.asked.Load() != test.asks {
				t.Errorf("Authorize was called %d times", k.asked.Load())
			}
			// Somebody logs in.
			web.intercept(nil)
			s.Reset()
			if k, ok := test.auth.(*keys); ok {
				k.bad = nil
			}
			call(t, s, "echo", "{}")
		})
	}
}

// loginRequired is an error that only a person can mend.
type loginWanted string

func (e loginWanted) Error() string    { return string(e) }
func (e loginWanted) NeedsLogin() bool { return true }

// An authorizer that fails for a reason that may pass parks nothing at once.
func TestAuthorizePasses(t *testing.T) {
	web := newSite(t, nil)
	var number atomic.Int32
	number.Store(-1)
	web.demand(&number)
	s := open(t, web.open(), &upstream.Options{Auth: &keys{fails: errors.New("no route to host")}})
	wantError(t, s.Connect(t.Context()), tool.Upstream, "HTTP 401 Unauthorized: no route to host")
	if state := s.State(); state.Status != upstream.Failed || state.Login {
		t.Errorf("state: %+v", state)
	}
}

// An authorization that ends while calls are under way fails them all, and parks.
func TestAuthorizationEnds(t *testing.T) {
	web := newSite(t, nil)
	k := &keys{}
	s := open(t, web.open(), &upstream.Options{Auth: k})
	call(t, s, "echo", "{}")
	k.fails = loginWanted("revoked: run `sallyport auth login web`")
	var number atomic.Int32
	number.Store(-1)
	web.demand(&number)
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			_, err := callContext(t.Context(), s, "echo", "{}")
			wantError(t, err, tool.Denied, "upstream web needs authorization", "revoked", "sallyport auth login web")
		})
	}
	calls.Wait()
	testutil.Eventually(t, "it is parked", soon, func() bool { return s.State().Status == upstream.Parked })
	if !s.State().Login || k.asked.Load() != 1 {
		t.Errorf("after %d tries: %+v", k.asked.Load(), s.State())
	}
	web.restart(nil) // nobody could tell the server that its session is over
}

func TestInsufficientScope(t *testing.T) {
	web := newSite(t, nil)
	web.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		refuse := strings.Contains(body, "secret") && r.Header.Get("Authorization") != "Bearer token-hunter2-1"
		if refuse {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="files:write"`)
			w.WriteHeader(http.StatusForbidden)
		}
		return refuse
	})
	k := &keys{fails: errors.New("not allowed to ask")}
	s := open(t, web.open(), &upstream.Options{Auth: k})
	for range 3 {
		call(t, s, "echo", "{}") // others go on
		_, err := callContext(t.Context(), s, "echo", `{"a":"secret"}`)
		wantError(t, err, tool.Denied, "HTTP 403 Forbidden: not allowed to ask", "sallyport auth login web")
	}
	if k.asked.Load() != 1 {
		t.Errorf("Authorize was called %d times, want once", k.asked.Load())
	}
	k = &keys{}
	s = open(t, web.open(), &upstream.Options{Auth: k})
	call(t, s, "echo", `{"a":"secret"}`)
	if k.asked.Load() != 1 {
		t.Errorf("Authorize was called %d times, want once", k.asked.Load())
	}
}

// That a scope cannot be had says nothing of another scope, or of a token.
func TestScopeMissingThenTokenRefused(t *testing.T) {
	web := newSite(t, nil)
	var number atomic.Int32
	web.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		for _, scope := range []string{"one", "two"} {
			if strings.Contains(body, scope) {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
				w.WriteHeader(http.StatusForbidden)
				return true
			}
		}
		ok := number.Load() == 0 || r.Header.Get("Authorization") == fmt.Sprintf("Bearer token-hunter2-%d", number.Load())
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return !ok
	})
	k := &keys{fails: loginWanted("more scopes: run `sallyport auth login web --scope x`")}
	s := open(t, web.open(), &upstream.Options{Auth: k})
	for range 2 {
		for _, scope := range []string{"one", "two"} {
			_, err := callContext(t.Context(), s, "echo", `{"a":"`+scope+`"}`)
			wantError(t, err, tool.Denied, "HTTP 403 Forbidden: more scopes: run `sallyport auth login web --scope x`")
			if n := strings.Count(err.Error(), "auth login"); n != 1 {
				t.Errorf("it says %d times what to do: %v", n, err)
			}
		}
	}
	if k.asked.Load() != 2 {
		t.Errorf("Authorize was called %d times, want once for each scope", k.asked.Load())
	}
	k.fails = nil
	number.Store(1)
	call(t, s, "echo", "{}")
}

// No other origin gets a token, and no error shows one.
func TestTokenStaysAtItsOrigin(t *testing.T) {
	var strays atomic.Int32
	other := tlstest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strays.Add(1) }))
	defer other.Close()
	web := newSite(t, nil)
	k := &keys{}
	k.got.Store(1)
	s := open(t, web.open(), &upstream.Options{Auth: k})
	call(t, s, "echo", "{}")
	web.intercept(func(w http.ResponseWriter, r *http.Request, body string) bool {
		if !strings.Contains(body, "poison") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"you said %s"}}`, r.Header.Get("Authorization"))
		return true
	})
	_, err := callContext(t.Context(), s, "echo", `{"a":"poison"}`)
	wantError(t, err, tool.Failed, "you said Bearer [hidden]")
	web.redirect(other.URL)
	_, err = callContext(t.Context(), s, "echo", "{}")
	wantError(t, err, tool.Upstream, "another origin")
	if strays.Load() != 0 {
		t.Error("the other origin got a request")
	}
}

func TestTokenCannotBeHad(t *testing.T) {
	web := newSite(t, nil)
	k := &keys{}
	s := open(t, web.open(), &upstream.Options{Auth: k})
	call(t, s, "echo", "{}")
	k.bad = errors.New("dial tcp: connection refused")
	_, err := callContext(t.Context(), s, "echo", "{}")
	wantError(t, err, tool.Upstream, "get access token: dial tcp")
	if got := s.State().Status; got != upstream.Ready {
		t.Errorf("status %s", got)
	}
	k.bad = nil // for the farewell
}
