package main_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/seal"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// sealSites gives gateways that share a store the same key.
func sealSites(t *testing.T, sites ...*flowsSite) {
	t.Helper()
	key := seal.Generate()
	for _, s := range sites {
		file := filepath.Join(s.dir, "seal.key")
		if err := os.WriteFile(file, key, 0o600); err != nil {
			t.Fatal(err)
		}
		s.replaceSettings(t, "store: {", fmt.Sprintf("store: {key: %q, ", file))
	}
}

// wantAnswer waits until a gateway answers a request with a token with a status.
func (s *flowsSite) wantAnswer(t *testing.T, token string, status int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("the answer has the status %d", status), 20*time.Second, func() bool {
		got, _ := s.ask(t, http.MethodGet, "/api/executions", "", "Authorization: Bearer "+token)
		return got == status
	})
}

// newToken makes a token that may read.
func (s *flowsSite) newToken(t *testing.T, name string) string {
	t.Helper()
	made, err := s.command("token", "create", name, "--scope", "read").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(made))
}

// TestSharedTokens has two gateways of one store: a token that a command makes is accepted by both, with the data directories that each
// has, and refused by both when a command revokes it at the other. One of a data directory is moved to the store.
func TestSharedTokens(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	one, two := newFlowsSite(t), newSharedSite(t, c, c.Creds)
	old := one.newToken(t, "old")
	one.share(t, c, c.Creds)
	one.serve(t)
	two.serve(t)
	one.wantAnswer(t, old, http.StatusOK)
	two.wantAnswer(t, old, http.StatusOK)
	token := two.newToken(t, "new")
	if status, answer := one.ask(t, http.MethodGet, "/api/executions", "", "Authorization: Bearer "+token); status != http.StatusOK {
		t.Errorf("a new token at the other gateway: %d %s", status, answer)
	}
	out, err := one.command("token", "list").Output()
	if list := string(out); err != nil || !strings.Contains(list, "new ") || !strings.Contains(list, "old ") {
		t.Errorf("%v\n%s", err, list)
	}
	for _, name := range []string{"old", "new"} {
		if out, err := one.command("token", "revoke", name).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	for _, s := range []*flowsSite{one, two} {
		s.wantAnswer(t, token, http.StatusUnauthorized)
		s.wantAnswer(t, old, http.StatusUnauthorized)
	}
	for _, s := range []*flowsSite{one, two} {
		if err := stop(s.cmd); err != nil {
			t.Error(err)
		}
	}
}

// logIn logs a browser in with a token, and returns the value of its cookie.
func (s *flowsSite) logIn(t *testing.T, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for _, c := range resp.Cookies() {
		if strings.HasPrefix(c.Name, "sallyport") {
			return c.Value
		}
	}
	t.Fatalf("no cookie: %s", resp.Status)
	return ""
}

// wantPage waits until a gateway answers a browser with a cookie with a status.
func (s *flowsSite) wantPage(t *testing.T, cookie, method, path string, status int) {
	t.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var answer []byte
	testutil.Eventually(t, fmt.Sprintf("%s %s has the status %d", method, path, status), 20*time.Second, func() (ok bool) {
		var got int
		got, answer = s.ask(t, method, path, "", "Cookie: sallyport_"+at.Port()+"="+cookie, "Sec-Fetch-Site: same-origin")
		return got == status
	})
	if strings.Contains(string(answer), cookie) {
		t.Error("the answer has the cookie")
	}
}

// TestSharedBrowserSession has two gateways of one store and key: a browser that logs in at one is known at the other, also after a
// restart and by a gateway that is killed, and is logged out at both.
func TestSharedBrowserSession(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	one, two := newSharedSite(t, c, c.Creds), newSharedSite(t, c, c.Creds)
	sealSites(t, one, two)
	one.serve(t)
	two.serve(t)
	cookie := one.logIn(t, flowsToken)
	two.wantPage(t, cookie, http.MethodGet, "/api/executions", http.StatusOK)
	if err := one.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.cmd.Wait() // killed
	two.wantPage(t, cookie, http.MethodGet, "/api/executions", http.StatusOK)
	one.serve(t)
	one.wantPage(t, cookie, http.MethodGet, "/api/executions", http.StatusOK)
	two.wantPage(t, cookie, http.MethodPost, "/logout", http.StatusOK) // the page that it leads to
	for _, s := range []*flowsSite{one, two} {
		s.wantPage(t, cookie, http.MethodGet, "/api/executions", http.StatusUnauthorized)
		if err := stop(s.cmd); err != nil {
			t.Error(err)
		}
	}
}

// TestSharedLogins has two gateways of one store and key: an API key that a command stores at one is used at the other, and gone at both
// after a logout.
func TestSharedLogins(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	one, two := newSharedSite(t, c, c.Creds), newSharedSite(t, c, c.Creds)
	sealSites(t, one, two)
	const key = "the-key-of-all"
	server := mcp.NewServer(&mcp.Implementation{Name: "crm", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	answer := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer.ServeHTTP(w, r)
	}))
	t.Cleanup(upstream.Close)
	for _, s := range []*flowsSite{one, two} {
		s.addUpstream(t, fmt.Sprintf("crm: {url: %q, auth: {type: key, header: X-Key}}", upstream.URL))
	}
	login := one.command("auth", "login", "crm")
	login.Stdin = strings.NewReader(key + "\n")
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	two.wantLogin(t, "logged in")
	if out, err := two.command("tools").CombinedOutput(); err != nil || !strings.Contains(string(out), "greet") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := two.command("auth", "logout", "crm").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	one.wantLogin(t, "not logged in")
}

// wantLogin waits until auth status says that of the upstream crm, with the login in the store.
func (s *flowsSite) wantLogin(t *testing.T, state string) {
	t.Helper()
	out, err := s.command("auth", "status", "crm", "--json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("%q", state)) || state == "logged in" && !strings.Contains(string(out), `"store": "store"`) {
		t.Errorf("%v\n%s", err, out)
	}
}
