package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway/dashboard"
	"sallyport/internal/access"
	"sallyport/internal/tool"
)

// TestRoles walks every page and form with each role, and compares what is refused with the table.
func TestRoles(t *testing.T) {
	var told []string
	h := house{told: &told}
	d := dashboard.New(h, &dashboard.Options{Workflows: flows{&told}, Tasks: duties{&told}, Connections: logins{&told}, Completions: aid{}, Drafts: aid{}, Author: author{&told}, Cluster: site{&told}, Editor: editor{&told}, Adder: adder{&told}, Rehearse: rehearse})
	least, walked := access.Operations(), map[string]bool{}
	member := regexp.MustCompile(`\{[^}]*\}`)
	for _, one := range d.Operations() {
		method, path, name := one[0], member.ReplaceAllString(strings.TrimSuffix(one[1], "{$}"), "x"), one[2]
		walked[name] = true
		for _, role := range append(access.Roles(), access.Metrics, "") {
			ctx := access.Caller{Principal: "oauth:ann"}.WithRole(role).NewContext(t.Context())
			if role == "" { // an operator without a role keeps all rights, if it has logged in on the gateway's machine
				ctx = access.Caller{Operator: "op", Local: true}.NewContext(t.Context())
			}
			r := httptest.NewRequestWithContext(ctx, method, path, http.NoBody)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			d.ServeHTTP(w, r)
			if may := role == "" || role.May(name); may == (w.Code == http.StatusForbidden) {
				t.Errorf("%s as %q: %d, but the least role is %q", name, role, w.Code, least[name])
			}
		}
		checkToken(t, d, method, path, name)
	}
	for name := range least {
		if strings.HasPrefix(name, "dashboard ") && !walked[name] {
			t.Errorf("the table has %q, which is no page", name)
		}
	}
}

// configuring are the pages that change the settings.
var configuring = []string{"dashboard POST /ui/playground/workflow", "dashboard GET /ui/add-upstream", "dashboard POST /ui/add-upstream", "dashboard GET /ui/upstreams/{id}/test", "dashboard GET /ui/policy/edit", "dashboard POST /ui/policy/edit", "dashboard GET /ui/upstreams/{id}/edit", "dashboard POST /ui/upstreams/{id}/edit", "dashboard POST /ui/upstreams/{id}/switch"}

// checkToken checks that an operator with a token may do all but change the settings.
func checkToken(t *testing.T, d *dashboard.Dashboard, method, path, name string) {
	t.Helper()
	ctx := access.Caller{Principal: "token:ci", Operator: "token:ci", Token: "x", Scopes: tool.Scopes()}.NewContext(t.Context())
	r := httptest.NewRequestWithContext(ctx, method, path, http.NoBody)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if refused := w.Code == http.StatusForbidden; refused != slices.Contains(configuring, name) {
		t.Errorf("%s with a token of an operator: %d", name, w.Code)
	}
}
