package httpserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/httpserver"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// pages are a dashboard that says who asks.
type pages struct{}

func (pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { sayWho(w, r) }

func (pages) Public(path string) bool { return strings.HasPrefix(path, "/ui/static/") }

func (pages) LoginPage(w http.ResponseWriter, _ *http.Request, status int, problem, signOut string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "form, problem %q%s", problem, signOut)
}

// browser is one that keeps cookies, and says of itself what browsers do.
type browser struct {
	t      *testing.T
	origin string
	cookie string
	head   http.Header // of the last answer
}

// ask makes a request as a page of ours does, unless the headers say otherwise. It returns status, and the body or
// where it leads.
func (b *browser) ask(method, path, body string, headers ...string) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.origin+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		req.Header.Set("Origin", b.origin)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if b.cookie != "" {
		req.Header.Set("Cookie", b.cookie)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.head = resp.Header
	for _, c := range resp.Cookies() {
		b.cookie = c.Name + "=" + c.Value
	}
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Location"), string(got))
}

func (b *browser) want(got, want string) {
	b.t.Helper()
	if !strings.Contains(got, want) {
		b.t.Errorf("%s\nwant %s", got, want)
	}
}

// login is a door with a dashboard, tokens in the settings, and tokens of sallyport token.
func login(t *testing.T, settings config.HTTP) (b *browser, sessions *access.Sessions, dir string) {
	t.Helper()
	dir = t.TempDir()
	tokens := access.OpenTokens(access.InFolder(dir, nil), nil)
	sessions = access.NewSessions(tokens)
	settings.Body, settings.Grace = config.MiB, time.Second
	opts := &httpserver.Options{Settings: settings, API: http.HandlerFunc(sayWho), Dashboard: pages{}, Tokens: tokens, Sessions: sessions}
	return &browser{t: t, origin: serve(t, opts)}, sessions, dir
}

// TestLoginByCode: a code of the control socket makes an operator of a browser, once.
func TestLoginByCode(t *testing.T) {
	t.Parallel()
	b, sessions, _ := login(t, config.HTTP{})
	b.want(b.ask("GET", "/", ""), `200 / as "" operator "" may execute true`)
	code := sessions.NewCode()
	b.want(b.ask("HEAD", "/login?code="+code, ""), "200 ") // who looks ahead uses nothing up
	b.want(b.ask("GET", "/login?code="+code, "", "Sec-Fetch-Site: none"), "303 /")
	cookie := b.head.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		b.want(cookie, want)
	}
	if strings.Contains(cookie, "Domain") || strings.Contains(cookie, code) || b.head.Get("Cache-Control") != "no-store" {
		t.Errorf("the cookie is %s, the header %v", cookie, b.head)
	}
	for _, path := range []string{"/", "/ui/executions", "/approvals"} {
		b.want(b.ask("GET", path, ""), `as "" operator "dashboard"`)
	}
	b.want((&browser{t: t, origin: b.origin}).ask("GET", "/login?code="+code, ""), "401 form, problem \"This code was used already")
	b.want((&browser{t: t, origin: b.origin}).ask("GET", "/login?code=guess", ""), "401 form")
	old := b.cookie
	b.want(b.ask("POST", "/logout", "", "Origin: http://localhost:1", "Sec-Fetch-Site: same-site"), "403 ")
	b.want(b.ask("GET", "/logout", ""), "405 ")
	b.want(b.ask("POST", "/logout", ""), "303 /login")
	b.cookie = old
	b.want(b.ask("GET", "/", ""), `operator ""`)
}

// TestLoginByToken: a token that is pasted opens what it may, while it is good; the secret of a session is new each time.
func TestLoginByToken(t *testing.T) {
	t.Parallel()
	b, _, dir := login(t, config.HTTP{Tokens: config.Secrets{"ops": "a-token-of-the-ops"}, Operators: []string{"ops"}, RequireToken: true})
	made, _, err := access.Create(t.Context(), access.InFolder(dir, nil), access.TokenSpec{Name: "ann", Scopes: []tool.Scope{tool.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	blind, _, err := access.Create(t.Context(), access.InFolder(dir, nil), access.TokenSpec{Name: "prometheus", Scopes: []tool.Scope{tool.ScopeMetrics}})
	if err != nil {
		t.Fatal(err)
	}
	b.want(b.ask("GET", "/", ""), "303 /login")
	b.want(b.ask("GET", "/ui/runs?live=1", "", "HX-Request: true"), "401 ")
	b.want(b.head.Get("HX-Redirect"), "/login")
	b.want(b.ask("GET", "/ui/static/x.css", ""), "200 ")
	b.want(b.ask("GET", "/login", ""), "200 form")
	b.want(b.ask("POST", "/login", "token=wrong"), `401 form, problem "This is an invalid token."`)
	b.want(b.ask("POST", "/login", "token="+made[:40]), "mistyped")
	b.want(b.ask("POST", "/login", "token="+blind), "403 form")
	b.want(b.ask("POST", "/login", "token="+made, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"), "403 ")
	b.cookie = "sallyport=fixed"
	b.want(b.ask("POST", "/login", url.Values{"token": {made}}.Encode()), "303 /")
	first := b.cookie
	b.want(b.ask("GET", "/", ""), `as "token:ann" operator "" may execute false`)
	b.want(b.ask("POST", "/login", "token=a-token-of-the-ops"), "303 /")
	b.want(b.ask("GET", "/", ""), `as "token:ops" operator "token:ops"`)
	ops := b.cookie
	if b.cookie = first; first == ops || strings.HasSuffix(first, "=fixed") {
		t.Errorf("sessions %s and %s", first, ops)
	}
	b.want(b.ask("GET", "/", ""), "303 /login") // who logs in anew has one session
	b.want(b.ask("POST", "/login", "token="+made), "303 /")
	if err := access.Revoke(t.Context(), access.InFolder(dir, nil), "ann"); err != nil {
		t.Fatal(err)
	}
	b.want(b.ask("GET", "/", ""), "303 /login")
	for range 10 {
		b.ask("POST", "/login", "token=guess")
	}
	b.want(b.ask("POST", "/login", "token=a-token-of-the-ops"), "429 form")
	if b.head.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// TestForeignPages: with a session in the browser, no page but ours can do or read anything, not even one of another
// port of this machine, which browsers send our cookie for.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	b, sessions, _ := login(t, config.HTTP{Origins: []string{"http://localhost:3000"}})
	b.ask("GET", "/login?code="+sessions.NewCode(), "")
	json := "Content-Type: application/json"
	b.want(b.ask("POST", "/approvals/a-1", "{}", json), `operator "dashboard"`)
	b.want(b.ask("POST", "/approvals/a-1", "{}"), "415 ")
	b.want(b.ask("POST", "/approvals/a-1", "{}", "Content-Type: text/plain"), "415 ")
	b.want(b.ask("POST", "/ui/approvals/a-1", "a=b"), `operator "dashboard"`)
	b.want(b.ask("POST", "/ui/approvals/a-1", "a=b", "Origin: null"), `operator "dashboard"`) // a form of a page without a referrer
	for _, headers := range [][]string{
		{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"},
		{"Origin: http://localhost:3000", "Sec-Fetch-Site: same-site"},
		{"Origin: null", "Sec-Fetch-Site: cross-site"},
		{"Origin: https://evil.example", "Sec-Fetch-Site: "},
		{"Origin: null", "Sec-Fetch-Site: "},
	} {
		for _, path := range []string{"/approvals/a-1", "/api/approvals/a-1", "/ui/approvals/a-1"} {
			got := b.ask("POST", path, "{}", append(headers, json)...)
			if !strings.HasPrefix(got, "403 ") && !strings.HasPrefix(got, "401 ") {
				t.Errorf("%s %v: %s", path, headers, got)
			}
		}
		if got := b.ask("GET", "/approvals", "", headers...); strings.Contains(got, "dashboard") {
			t.Errorf("%v: %s", headers, got)
		}
	}
	b.want(b.ask("GET", "/", ""), "200 ")
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"} {
		if b.head.Get(name) != want {
			t.Errorf("%s is %q", name, b.head.Get(name))
		}
	}
	if b.head.Get("Access-Control-Allow-Origin") != "" {
		t.Error("pages of other origins may read it")
	}
	b.want(b.ask("GET", "/mcp", ""), `operator ""`) // MCP knows no sessions of browsers
}
