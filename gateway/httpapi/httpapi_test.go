package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/httpapi"
	"sallyport/internal/tool"
)

// house is a gateway in memory: ada and bob have run something, an operator sees both.
type house struct{}

func (house) Upstreams() []gateway.Upstream { return []gateway.Upstream{{ID: "crm"}} }

func (house) Records(ctx context.Context) iter.Seq2[gateway.Record, error] {
	return func(yield func(gateway.Record, error) bool) {
		for i, who := range []string{"ada", "bob", "ada"} {
			if tool.Operator(ctx) != "" || tool.Principal(ctx) == who {
				if !yield(gateway.Record{ID: fmt.Sprint("e-", i), Principal: who, Language: "python", Status: "ok", Duration: 1500 * time.Millisecond, Made: i}, nil) {
					return
				}
			}
		}
	}
}

func (h house) Recorded(ctx context.Context, id string) (gateway.Record, error) {
	for r := range h.Records(ctx) {
		if r.ID == id {
			return r, nil
		}
	}
	return gateway.Record{}, &tool.Error{Kind: tool.NotFound, Message: "there is no execution " + id, Hint: "use another"}
}

// ask is a request of somebody, "op" is an operator; it gives the status and the body, which must be JSON.
func ask(t *testing.T, who, method, path, body string, headers ...string) (int, http.Header, map[string]any) {
	t.Helper()
	ctx := tool.WithPrincipal(t.Context(), who)
	if who == "op" {
		ctx = tool.WithOperator(ctx, "cli")
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	httpapi.New(house{}, nil).ServeHTTP(w, r)
	var got map[string]any
	dec := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	if err := dec.Decode(&got); err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, w.Body)
	}
	return w.Code, w.Header(), got
}

// TestWhoSeesWhat: everybody sees what is theirs, an operator all, the newest first.
func TestWhoSeesWhat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ who, path, want string }{
		{"op", "/executions", "e-2 e-1 e-0"},
		{"op", "/executions?limit=2", "e-2 e-1"},
		{"ada", "/executions", "e-2 e-0"},
		{"bob", "/executions?limit=1000", "e-1"},
		{"", "/executions", ""},
	} {
		status, _, got := ask(t, test.who, http.MethodGet, test.path, "")
		var ids []string
		for _, e := range got["executions"].([]any) {
			ids = append(ids, e.(map[string]any)["id"].(string))
		}
		if strings.Join(ids, " ") != test.want || status != http.StatusOK {
			t.Errorf("%s %s: %d %v", test.who, test.path, status, got)
		}
	}
	if status, header, got := ask(t, "ada", http.MethodGet, "/executions/e-1", ""); status != http.StatusNotFound ||
		header.Get("Content-Type") != "application/problem+json" || got["kind"] != "not_found" || got["hint"] != "use another" || got["status"] != 404.0 {
		t.Errorf("ada sees bob's: %d %v", status, got)
	}
	if status, header, got := ask(t, "bob", http.MethodGet, "/executions/e-1", ""); status != http.StatusOK || got["principal"] != "bob" || header.Get("Cache-Control") != "no-store" {
		t.Errorf("bob sees his: %d %v", status, got)
	}
	if status, _, got := ask(t, "bob", http.MethodGet, "/health", ""); status != http.StatusOK || got["status"] != "ok" || got["kept"] != false {
		t.Errorf("health: %d %v", status, got)
	}
}

// TestWrongRequests: each is a problem document that says what would be right, and no text of a request comes back as it was.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, path string
		status       int
		says         string
	}{
		{http.MethodGet, "/", 404, "there is nothing at /"},
		{http.MethodGet, "/approval%1b[31m", 404, "there is nothing at /approval"},
		{http.MethodDelete, "/executions", 405, "use GET here"},
		{http.MethodGet, "/executions?limit=0", 400, "limit must be one number, 1 to 1000"},
		{http.MethodGet, "/executions?limit=1001", 400, "1 to 1000"},
		{http.MethodGet, "/executions?limit=1&limit=2", 400, "limit must be one number"},
		{http.MethodGet, "/executions?principal=bob", 400, "there is no parameter principal here"},
	} {
		status, header, got := ask(t, "op", test.method, test.path, "")
		if detail, _ := got["detail"].(string); status != test.status || !strings.Contains(detail, test.says) || header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %v", test.method, test.path, status, got)
		}
		if status == 405 && header.Get("Allow") != "GET" {
			t.Errorf("allowed: %v", header)
		}
	}
}
