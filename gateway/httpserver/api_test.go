package httpserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/httpserver"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// TestAPI: only who has a token gets to the API, only those of the settings as operators, and no page of elsewhere.
func TestAPI(t *testing.T) {
	t.Parallel()
	settings := config.HTTP{Body: 4096, Grace: time.Second, Origins: []string{"https://app.example"}, Operators: []string{"ops", "oauth:ann"},
		Tokens: config.Secrets{"ops": "a-token-of-the-ops", "ci": "a-token-of-the-ci", "oauth:ann": "a-token-named-as-ann"}}
	api := http.HandlerFunc(sayWho)
	at := serve(t, &httpserver.Options{Settings: settings, API: api})
	for _, test := range []struct {
		token, path string
		status      int
		want        string
		headers     []string
	}{
		{"a-token-of-the-ops", "/api/approvals", 200, `/approvals as "token:ops" operator "token:ops"`, nil},
		{"a-token-of-the-ci", "/api/approvals", 200, `/approvals as "token:ci" operator ""`, nil},
		{"a-token-named-as-ann", "/api/x", 200, `/x as "token:oauth:ann" operator "token:oauth:ann"`, nil},
		{"", "/api/approvals", 401, "no bearer token", nil},
		{"a-token-of-nobody", "/api/approvals", 401, "invalid token", nil},
		{"a-token-of-the-ops", "/execute", 200, `/execute as "token:ops"`, []string{"Origin: https://app.example"}},
		{"", "/execute", 401, "no bearer token", []string{"Origin: https://app.example"}},
		{"a-token-of-the-ops", "/api/approvals", 403, "origin is not allowed", []string{"Origin: http://localhost:1"}},
		{"a-token-of-the-ops", "/api/approvals", 403, "origin is not allowed", []string{"Origin: null"}},
		{"", "/health", 200, "may execute false", nil},
		{"", "/api/readyz", 200, "may execute false", nil},
		{"a-token-of-nobody", "/health", 401, "invalid token", nil},
		{"a-token-of-the-ops", "/api/approvals", 403, "origin is not allowed", []string{"Origin: https://evil.example"}},
		{"a-token-of-the-ops", "/api/approvals", 403, "host name is not served", []string{"Host: evil.example"}},
	} {
		if test.token != "" {
			test.headers = append(test.headers, "Authorization: Bearer "+test.token)
		}
		head, body := request(t, http.MethodGet, at+test.path, "", test.headers...)
		if head.StatusCode != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %v: %d %s", test.path, test.headers, head.StatusCode, body)
		}
		shared := len(test.headers) > 0 && test.headers[0] == "Origin: https://app.example"
		if shared != (head.Header.Get("Access-Control-Allow-Origin") != "") || head.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %v: which pages may read it: %v", test.path, test.headers, head.Header)
		}
		problem := struct{ Status int }{}
		if test.status == 401 && (json.Unmarshal([]byte(body), &problem) != nil || problem.Status != 401 || head.Header.Get("Content-Type") != "application/problem+json" || head.Header.Get("WWW-Authenticate") == "") {
			t.Errorf("refused with %v %s", head.Header, body)
		}
	}
	if head, body := request(t, http.MethodPost, at+"/api/approvals/a-1", strings.Repeat("x", 1<<20+1), "Authorization: Bearer a-token-of-the-ops"); head.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(body, `"status":413`) {
		t.Errorf("a large body: %d %s", head.StatusCode, body)
	}
	if head, _ := request(t, http.MethodOptions, at+"/api/approvals", "", "Origin: http://localhost:1", "Access-Control-Request-Method: POST"); head.StatusCode != http.StatusForbidden {
		t.Errorf("preflight: %d", head.StatusCode)
	}
	if head, _ := request(t, http.MethodOptions, at+"/execute", "", "Origin: https://app.example", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization"); head.StatusCode != http.StatusNoContent || head.Header.Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("preflight: %d %v", head.StatusCode, head.Header)
	}
}

// TestMetricsToken: a token of http.metrics reads only the metrics and the health, also if http.operators names it.
func TestMetricsToken(t *testing.T) {
	t.Parallel()
	settings := config.HTTP{Body: 4096, Grace: time.Second, Metrics: []string{"prometheus"}, Operators: []string{"prometheus"}, Tokens: config.Secrets{"prometheus": "a-token-for-the-metrics"}}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := access.CallerFrom(r.Context())
		_, _ = fmt.Fprintf(w, "%s as %s %v operator %q", caller.Role, caller.Principal, caller.Scopes, tool.Operator(r.Context()))
	})
	at := serve(t, &httpserver.Options{Settings: settings, API: api, Dashboard: pages{}})
	token := "Authorization: Bearer a-token-for-the-metrics"
	for _, path := range []string{"/metrics", "/api/metrics", "/health", "/readyz"} { // the API refuses the role all others
		if head, body := request(t, http.MethodGet, at+path, "", token); head.StatusCode != http.StatusOK || body != `metrics as token:prometheus [metrics] operator ""` {
			t.Errorf("%s: %d %s", path, head.StatusCode, body)
		}
	}
	for _, path := range []string{"/mcp", "/mcp/direct", "/", "/ui/executions"} {
		if head, body := request(t, http.MethodGet, at+path, "", token); head.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, head.StatusCode, body)
		}
	}
	head, body := request(t, http.MethodPost, at+"/login", "token=a-token-for-the-metrics", "Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: same-origin")
	if head.StatusCode == http.StatusSeeOther || head.Header.Get("Set-Cookie") != "" {
		t.Errorf("it opens a session: %d %v %s", head.StatusCode, head.Header, body)
	}
}

// TestReplies: answers of receivers of alerts need no token, and are the only such requests of the API.
func TestReplies(t *testing.T) {
	t.Parallel()
	replies := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "reply to "+r.PathValue("id")) })
	at := serve(t, &httpserver.Options{API: http.HandlerFunc(sayWho), Replies: replies, Settings: config.HTTP{RequireToken: true, Tokens: config.Secrets{"ada": "a-token-of-ada"}}})
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
	}{
		{http.MethodPost, "/api/approvals/a-1/reply", nil, http.StatusOK},
		{http.MethodPost, "/api/approvals/a-1/reply", []string{"Origin: https://evil.example"}, http.StatusForbidden},
		{http.MethodGet, "/api/approvals/a-1/reply", nil, http.StatusUnauthorized},
		{http.MethodPost, "/api/approvals/a-1", nil, http.StatusUnauthorized},
		{http.MethodPost, "/approvals/a-1/reply", nil, http.StatusUnauthorized},
		{http.MethodPost, "/api/approvals/a-1/reply/../../a-1", nil, http.StatusUnauthorized},
	} {
		head, body := request(t, c.method, at+c.path, "{}", c.headers...)
		if head.StatusCode != c.status || (c.status == http.StatusOK) != (body == "reply to a-1") {
			t.Errorf("%s %s %v: %d %s", c.method, c.path, c.headers, head.StatusCode, body)
		}
	}
}

// TestNoTokens: a program on this machine may do what it may at /mcp, and must not answer for its user.
func TestNoTokens(t *testing.T) {
	t.Parallel()
	at := serve(t, &httpserver.Options{API: http.HandlerFunc(sayWho)})
	for _, path := range []string{"/execute", "/api/execute", "/mcp"} {
		head, body := request(t, http.MethodPost, at+path, "{}")
		if head.StatusCode != http.StatusOK || !strings.Contains(body, `as "" operator "" may execute true`) {
			t.Errorf("%s: %d %s", path, head.StatusCode, body)
		}
		if head, _ := request(t, http.MethodGet, at+path, "", "Sec-Fetch-Site: same-site"); path != "/mcp" && head.StatusCode != http.StatusForbidden {
			t.Errorf("%s of a page of another port: %d", path, head.StatusCode)
		}
		if head, body := request(t, http.MethodPost, at+path, "{}", "Authorization: Bearer a-token-of-nobody"); head.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with a wrong token: %d %s", path, head.StatusCode, body)
		}
	}
}
