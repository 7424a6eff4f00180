package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sallyport/gateway/httpapi"
)

// TestHealth: who may not read hears that it is there, and which version; who may, of each upstream.
func TestHealth(t *testing.T) {
	t.Parallel()
	status, _, got := ask(t, "only metrics", http.MethodGet, "/health", "")
	if status != http.StatusOK || got["status"] != "ok" || got["version"] != "dev" || got["upstreams"] != nil || got["uptime_ms"] != nil {
		t.Errorf("a stranger: %d %v", status, got)
	}
	_, _, got = ask(t, "only read", http.MethodGet, "/health", "")
	up := got["upstreams"].([]any)[0].(map[string]any)
	if up["status"] != "failed" || up["reason"] != "no such host" || up["tools"] != 3.0 || got["uptime_ms"] == nil {
		t.Errorf("a reader: %v", got)
	}
}

// unready is a house that waits for something.
type unready struct{ house }

func (unready) NotReady() []string { return []string{"upstreams have not been tried yet: crm"} }

// TestReady: what is missing is a problem with status 503, and so is an end that is near.
func TestReady(t *testing.T) {
	t.Parallel()
	draining := options()
	draining.Draining = func() bool { return true }
	for _, test := range []struct {
		name   string
		verbs  httpapi.Service
		opts   *httpapi.Options
		status int
		says   string
	}{
		{"ready", house{}, options(), 200, `"status":"ready"`},
		{"not tried", unready{}, options(), 503, "the gateway is not ready: upstreams have not been tried yet: crm"},
		{"draining", unready{}, draining, 503, "crm; it is about to end"},
	} {
		w := httptest.NewRecorder()
		httpapi.New(test.verbs, test.opts).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.says) {
			t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
		}
	}
}
