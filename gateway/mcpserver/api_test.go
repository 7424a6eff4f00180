package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// sayWho answers with who its context says.
func sayWho(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s as %q operator %q", r.URL.Path, tool.Principal(r.Context()), tool.Operator(r.Context()))
}

// TestAPI: only who has a token gets to the API, only those of the settings as operators, and no page of elsewhere.
func TestAPI(t *testing.T) {
	t.Parallel()
	settings := config.HTTP{Body: 4096, Grace: time.Second, Origins: []string{"https://app.example"}, Operators: []string{"ops", "oauth:ann"},
		Tokens: config.Secrets{"ops": "a-token-of-the-ops", "ci": "a-token-of-the-ci", "oauth:ann": "a-token-named-as-ann"}}
	api := http.HandlerFunc(sayWho)
	at := serve(t, newFace(t, &upstreams{}, false), &mcpserver.SiteOptions{Settings: settings, API: api})
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
		{"a-token-of-the-ops", "/api/approvals", 403, "no page of another origin", []string{"Origin: https://app.example"}},
		{"a-token-of-the-ops", "/api/approvals", 403, "no page of another origin", []string{"Origin: http://localhost:1"}},
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
		if head.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %v: pages of other origins may read it", test.path, test.headers)
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
}

// TestNoTokensNoAPI: a program on this machine must not answer for its user.
func TestNoTokensNoAPI(t *testing.T) {
	t.Parallel()
	settings := config.HTTP{Body: 4096, Grace: time.Second}
	at := serve(t, newFace(t, &upstreams{}, false), &mcpserver.SiteOptions{Settings: settings, API: http.HandlerFunc(sayWho)})
	if head, body := request(t, http.MethodGet, at+"/api/approvals", ""); head.StatusCode != http.StatusForbidden || !strings.Contains(body, `"detail":"the API needs tokens`) {
		t.Errorf("%d %s", head.StatusCode, body)
	}
}
