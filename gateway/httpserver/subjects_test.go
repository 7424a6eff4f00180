package httpserver_test

import (
	"context"
	"maps"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/httpserver"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
)

// departed are the principals of which everything was forgotten.
type departed struct {
	mu  sync.Mutex
	all []string
}

func (d *departed) forget(_ context.Context, principal string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, principal)
}

func (d *departed) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// TestSubjectsOfSessions: the tokens of a person are kept for exchange from the sign-in to the logout, or until the provider ends the
// session; those of a person without a role, and forged ones, are not.
func TestSubjectsOfSessions(t *testing.T) {
	t.Parallel()
	p, gone := newRealm(t, time.Nanosecond, nil), &departed{}
	p.subjects.Use(func(issuer string) bool { return issuer == p.as.URL }, gone.forget)
	kept := func(who, kind string) string {
		one, _ := p.subjects.Get("oauth:"+who+"@example.com", p.as.URL, kind)
		return one.ID
	}
	ann, bob, eve := p.person(), p.person(), p.person()
	ann.want(ann.signIn("u1"), "303 /")
	bob.want(bob.signIn("u2"), "303 /")
	eve.want(eve.signIn("u3"), "403 form")
	for _, kind := range []string{"id_token", "access_token"} {
		if a, b, e := kept("ann", kind), kept("bob", kind), kept("eve", kind); a != "u1" || b != "u2" || e != "" {
			t.Errorf("%s of ann, bob and eve: %q, %q, %q", kind, a, b, e)
		}
	}
	ann.want(ann.with(ann.web, http.MethodPost, "/logout"), "303 /login?signed_out")
	if kept("ann", "id_token") != "" || kept("ann", "access_token") != "" || gone.count() != 1 {
		t.Errorf("tokens are kept after the logout; %v", gone.all)
	}
	p.as.Forge(func(claims map[string]any) string {
		claims["sub"], claims["email"] = "u1", "ann@example.com"
		return p.as.Sign(t, claims)
	})
	bob.want(bob.get("/"), "303 /login") // bob's session is renewed with ann's ID token
	if kept("ann", "id_token") != "" || kept("bob", "id_token") != "" || gone.count() != 2 {
		t.Errorf("after the provider gave bob the token of ann: %v", gone.all)
	}
	p.as.Forge(nil)
	bob.want(bob.signIn("u2"), "303 /")
	p.as.Disable("u2")
	bob.want(bob.get("/"), "303 /login")
	if kept("bob", "id_token") != "" || gone.count() != 3 {
		t.Errorf("after the account was disabled: %v", gone.all)
	}
}

// TestSubjectsOfClients: the verified token of an MCP client is kept for its principal, as what it is; a refused one is not.
func TestSubjectsOfClients(t *testing.T) {
	t.Parallel()
	as := authserver.New(t, &authserver.Options{OpenID: true})
	const audience = "https://tools.example.com/mcp"
	subjects := access.NewSubjects()
	subjects.Use(func(string) bool { return true }, (&departed{}).forget)
	origin := startServer(t, &httpserver.Options{
		Logger: testutil.Logger(t), API: http.HandlerFunc(sayWho), Subjects: subjects, Settings: config.HTTP{OAuth: &config.ResourceServer{Issuer: as.URL, Audience: audience, Scopes: []string{"tools"}}},
	}, func(l net.Listener, o *httpserver.Options) *httpserver.Server { return httpserver.New(l, o) })
	for who, test := range map[string]struct {
		change map[string]any
		want   string
	}{
		"ada":  {nil, "access_token"},
		"bob":  {map[string]any{"aud": "https://other.example.com"}, ""},
		"carl": {map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, ""},
		"dan":  {map[string]any{"scope": "mail"}, ""},
	} {
		claims := map[string]any{"iss": as.URL, "sub": who, "aud": audience, "scope": "tools", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
		maps.Copy(claims, test.change)
		token := as.Sign(t, claims)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, origin+"/executions", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got := ""
		for _, kind := range []string{"access_token", "id_token"} {
			if one, ok := subjects.Get("oauth:"+who, as.URL, kind); ok && one.Token == token && one.ID == who {
				got += kind
			}
		}
		if got != test.want {
			t.Errorf("%s: %q is kept, want %q; HTTP %d", who, got, test.want, resp.StatusCode)
		}
	}
}
