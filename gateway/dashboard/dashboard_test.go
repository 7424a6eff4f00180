package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"sallyport/gateway/catalog"
	"sallyport/gateway/dashboard"
	"sallyport/gateway/reload"
	"sallyport/gateway/upstream"
	"sallyport/internal/access"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// evil is what every text of the house's upstreams, programs and clients has in it.
const evil = "\"><script>alert(1)</script><img src=x onerror=alert(2)>' {{.Who}} javascript:alert(3) \u202eRTL\u200b\x1b[31m"

// house is a gateway in memory in which everybody is hostile. Each file of tests adds the verbs of its pages.
type house struct {
	// told is what forms have asked for.
	told *[]string
	// tool is one more tool; nil for none.
	tool *tool.Tool
}

func (house) Settings() reload.Status { return reload.Status{Path: "/etc/upstreams.yaml"} }

func (house) Upstreams() []catalog.Upstream {
	return []catalog.Upstream{
		{ID: "crm", Name: "crm", Description: "Customers " + evil, Known: true, State: upstream.State{Status: upstream.Ready, Tools: 12}},
		{ID: "evil", Name: "evil", Description: evil, Held: 1, State: upstream.State{Status: upstream.Failed, Error: evil, Stderr: evil + refused, ServerName: evil, ServerVersion: evil}},
	}
}

// answer is what a page gave.
type answer struct {
	*httptest.ResponseRecorder
}

// ask asks for a page as a caller; "op" is an operator who may change the settings, "token" one who may not, "reader" may only
// read, and "" is nobody in particular. A form makes it a POST.
func ask(t *testing.T, h house, who, path string, form url.Values, headers ...string) answer {
	t.Helper()
	return send(t, newDashboard(t, h, h.told), who, path, form, headers...)
}

// send is ask for pages that are open already.
func send(t *testing.T, d *dashboard.Dashboard, who, path string, form url.Values, headers ...string) answer {
	t.Helper()
	ctx := tool.WithPrincipal(t.Context(), who)
	if who == "op" || who == "token" {
		ctx = access.Caller{Principal: who, Operator: "op", Scopes: tool.Scopes(), Local: who == "op"}.NewContext(ctx)
	}
	if who == "reader" {
		ctx = tool.WithScopes(ctx, []tool.Scope{tool.ScopeRead})
	}
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return answer{w}
}

// newDashboard returns the pages of a house.
func newDashboard(t *testing.T, h dashboard.Service, told *[]string) *dashboard.Dashboard {
	t.Helper()
	return dashboard.New(h, &dashboard.Options{Version: "1.2.3", Endpoint: dashboard.Endpoint{URL: "https://tools.example.com/mcp", Token: true}, Workflows: flows{told}, Tasks: duties{told}, Cluster: site{told}, Connections: logins{told}, Completions: aid{}, Drafts: aid{}, Author: author{told}, Environments: environments, Policy: rules, Editor: editor{told}, Adder: adder{told}, Rehearse: rehearse, Disabled: disabled, Isolation: isolated, Logger: testutil.Logger(t)})
}

// allowed are the only tags of scripts and images that pages have.
var (
	scripts  = regexp.MustCompile(`(?i)<script[^>]*>`)
	ours     = regexp.MustCompile(`^<script src="/ui/static/[a-z.]+\.[0-9a-f]{12}\.js"( defer)?>$`)
	handlers = regexp.MustCompile(`(?i)<[a-z][^>]*\s(on[a-z]+|style|srcdoc)\s*=`)
	links    = regexp.MustCompile(`(?i)\s(?:href|src|action|hx-get|hx-post)="([^"]*)"`)
)

// checkHarmless finds what text of others has become in a page: it must all be text.
func checkHarmless(t *testing.T, page string) {
	t.Helper()
	for _, tag := range scripts.FindAllString(page, -1) {
		if !ours.MatchString(tag) {
			t.Errorf("script in the page: %s", tag)
		}
	}
	if tag := handlers.FindString(page); tag != "" {
		t.Errorf("handler or style in a tag: %s", tag)
	}
	for _, link := range links.FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(link[1], "/") || strings.HasPrefix(link[1], "//") {
			if !strings.HasPrefix(link[1], "#") {
				t.Errorf("link elsewhere: %s", link[0])
			}
		}
	}
	if strings.ContainsAny(page, "\u202e\u200b\x1b") {
		t.Error("characters that do not show are in the page")
	}
}

func TestHeaders(t *testing.T) {
	for _, path := range []string{"/", "/ui/nothing"} {
		got := ask(t, house{}, "op", path, nil)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Content-Type": "text/html; charset=utf-8",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		} {
			if got.Header().Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got.Header().Get(name), want)
			}
		}
	}
}

func TestFilesAreKeptForEver(t *testing.T) {
	page := ask(t, house{}, "", "/", nil).Body.String()
	found := regexp.MustCompile(`/ui/static/[^"]+`).FindAllString(page, -1)
	if len(found) < 4 {
		t.Fatalf("the page has %q", found)
	}
	for _, path := range found {
		got := ask(t, house{}, "", path, nil)
		if got.Code != http.StatusOK || !strings.Contains(got.Header().Get("Cache-Control"), "immutable") || got.Body.Len() == 0 {
			t.Errorf("%s: %d %v", path, got.Code, got.Header())
		}
	}
	if got := ask(t, house{}, "", "/ui/static/style.css", nil); got.Code != http.StatusNotFound {
		t.Errorf("a file without its digest: %d", got.Code)
	}
}
