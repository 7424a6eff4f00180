package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway/httpapi"
	"sallyport/internal/access"
	"sallyport/internal/testutil/refpage"
)

// TestRoles walks every operation with each role, and compares what is refused with the table.
func TestRoles(t *testing.T) {
	t.Parallel()
	api := httpapi.New(house{}, options())
	least, walked := access.Operations(), map[string]bool{"mcp": true} // the HTTP server's
	for name, at := range operations(t, api) {
		walked[name] = true
		for _, role := range append(access.Roles(), access.Metrics, "") {
			ctx := access.Caller{Principal: "oauth:ada"}.WithRole(role).NewContext(t.Context())
			if role == "" { // an operator without a role keeps all rights
				ctx = access.Caller{Operator: "op"}.NewContext(t.Context())
			}
			r := httptest.NewRequestWithContext(ctx, at[0], at[1], strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if may := role == "" || role.May(name); may == (w.Code == http.StatusForbidden) {
				t.Errorf("%s as %q: %d, but the least role is %q", name, role, w.Code, least[name])
			}
		}
	}
	for name := range least {
		if !strings.HasPrefix(name, "dashboard ") && !walked[name] {
			t.Errorf("the table has %q, which is no operation", name)
		}
		if access.Metrics.May(name) != slices.Contains([]string{"get_metrics", "get_health", "get_readiness"}, name) {
			t.Errorf("the role metrics may do %s: %t", name, access.Metrics.May(name))
		}
	}
	if len(walked) < 45 {
		t.Errorf("only %d operations", len(walked))
	}
}

// operations returns the method and an address of each operation of the API.
func operations(t *testing.T, api http.Handler) map[string][2]string {
	t.Helper()
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json?profile=clients", http.NoBody))
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	all, member := map[string][2]string{}, regexp.MustCompile(`\{[^}]*\}`)
	for path, methods := range document.Paths {
		for method, raw := range methods {
			var op struct{ OperationID string }
			if json.Unmarshal(raw, &op) == nil && op.OperationID != "" {
				all[op.OperationID] = [2]string{strings.ToUpper(method), member.ReplaceAllString(path, "x")}
			}
		}
	}
	return all
}

// metricsOperations are those of the role metrics.
func metricsOperations() string {
	all := slices.Sorted(maps.Keys(access.Operations()))
	return refpage.QuoteAll(slices.DeleteFunc(all, func(name string) bool { return !access.Metrics.May(name) }))
}

// TestRolesReference holds docs/reference/roles.md to the table.
func TestRolesReference(t *testing.T) {
	p := refpage.New("roles.md", "Roles", "gateway/httpapi", "TestRolesReference")
	p.Text("What the roles of `http.identity.roles` may do. Each role may also do what the roles above it may. Operations of the API have " +
		"their operationId, pages and forms of the dashboard their method and path. [Access over HTTP](../how-to/access.md) explains how callers get a role.")
	p.Text("Tokens in `http.metrics` have a role of their own, `metrics`, with these operations: " + metricsOperations() + ".")
	least := access.Operations()
	for _, role := range access.Roles() {
		var api, pages []string
		for name, of := range least {
			page, isPage := strings.CutPrefix(name, "dashboard ")
			switch {
			case of != role:
			case isPage:
				pages = append(pages, page)
			default:
				api = append(api, name)
			}
		}
		p.Heading(2, string(role))
		p.List([]string{"API: " + refpage.QuoteAll(slices.Sorted(slices.Values(api))), "dashboard: " + refpage.QuoteAll(slices.Sorted(slices.Values(pages)))})
	}
	p.Check(t)
}
