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
	"sync"
	"testing"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/catalog"
	"sallyport/gateway/cluster"
	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/plugin"
	"sallyport/gateway/upstream"
	"sallyport/internal/approval"
	"sallyport/internal/store"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// house is a gateway in memory: ada and bob have run something, an operator sees both.
type house struct{ httpapi.Service }

func (house) Upstreams() []catalog.Upstream {
	return []catalog.Upstream{{ID: "crm", State: upstream.State{Status: upstream.Failed, Error: "no such host", Tools: 3}}}
}

func (house) NotReady() []string { return nil }

func (house) Records(ctx context.Context) iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for i, who := range []string{"ada", "bob", "ada"} {
			if tool.Operator(ctx) != "" || tool.Principal(ctx) == who {
				if !yield(history.Record{ID: fmt.Sprint("e-", i), Principal: who, Language: "python", Status: "ok", Duration: 1500 * time.Millisecond, Made: i}, nil) {
					return
				}
			}
		}
	}
}

func (h house) Record(ctx context.Context, id string) (history.Record, error) {
	for r := range h.Records(ctx) {
		if r.ID == id {
			return r, nil
		}
	}
	return history.Record{}, &tool.Error{Kind: tool.NotFound, Message: "there is no execution " + id, Hint: "use another"}
}

func (house) Approvals(ctx context.Context) ([]approvals.Approval, error) {
	var mine []approvals.Approval
	for i, who := range []string{"ada", "bob"} {
		if tool.Operator(ctx) != "" || tool.Principal(ctx) == who {
			mine = append(mine, approvals.Approval{ID: fmt.Sprint("a-", i), State: approval.Waiting, Request: approval.Request{Principal: who, Tool: "crm.delete"}})
		}
	}
	return mine, nil
}

// Answer answers anybody: who may is for the face to know.
func (h house) Answer(ctx context.Context, id string, a approvals.Answer) (approvals.Approval, error) {
	all, err := h.Approvals(tool.WithOperator(ctx, "test"))
	for _, one := range all {
		if one.ID == id {
			one.State, one.Scope, one.By, one.Note = approval.Denied, a.Scope, a.By, a.Note
			if a.Allow {
				one.State = approval.Allowed
			}
			return one, err
		}
	}
	return approvals.Approval{}, &tool.Error{Kind: tool.NotFound, Message: "there is no approval"}
}

func options() *httpapi.Options {
	return &httpapi.Options{Workflows: &mill{}, Tasks: clerk{}, Plugins: shelf{}, Cluster: fleet{}, Telemetry: measuring()}
}

var measuring = sync.OnceValue(func() *telemetry.Telemetry {
	t, err := telemetry.Open(context.Background(), telemetry.Options{Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		panic(err)
	}
	return t
})

// ask is a request of somebody, "op" is an operator, "only SCOPE" may do no more than that; it gives the status and the body, which must be JSON.
func ask(t *testing.T, who, method, path, body string, headers ...string) (int, http.Header, map[string]any) {
	t.Helper()
	ctx := tool.WithPrincipal(t.Context(), who)
	if who == "op" {
		ctx = tool.WithOperator(ctx, "cli")
	}
	if scopes, ok := strings.CutPrefix(who, "only "); ok {
		ctx = tool.WithScopes(ctx, []tool.Scope{tool.Scope(scopes)})
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	httpapi.New(house{}, options()).ServeHTTP(w, r)
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

// TestWhoAnswers: an operator, once it is clear what is meant; nobody else.
func TestWhoAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		who, id, body string
		status        int
		says          string
	}{
		{"op", "a-0", `{"decision":"allow"}`, 200, "allowed  cli "},
		{"op", "a-0", `{"decision":"allow","scope":"session"}`, 200, "allowed session cli "},
		{"op", "a-1", `{"decision":"deny","reason":"no \u001b[31mway"}`, 200, "denied  cli no way"},
		{"op", "a-9", `{"decision":"allow"}`, 404, "there is no approval"},
		{"ada", "a-0", `{"decision":"allow"}`, 403, "only an operator may do this"},
		{"", "a-0", `{"decision":"allow"}`, 403, "only an operator may do this"},
		{"op", "a-0", `{}`, 400, "the body needs decision"},
		{"op", "a-0", `{"decision":"Allow"}`, 400, "decision must be allow or deny"},
		{"op", "a-0", `{"decision":"deny","scope":"once"}`, 400, "a denial has no scope"},
		{"op", "a-0", `{"decision":"deny","decision":"allow"}`, 400, "the body has decision twice"},
		{"op", "a-0", `{"decision":"deny","Decision":"allow"}`, 400, "the body has no Decision"},
		{"op", "a-0", `{"decision":"allow","by":"root"}`, 400, "the body has no by"},
		{"op", "a-0", `{"decision":true}`, 400, "decision cannot be a bool"},
		{"op", "a-0", `["allow"]`, 400, "the body must be one JSON object"},
		{"op", "a-0", `{"decision":"allow"}{}`, 400, "the body is not JSON"},
		{"op", "a-0", "{\"decision\":\"allow\",\"reason\":\"\xff\"}", 400, "the body is not JSON"},
		{"op", "a-0", "", 400, "the body is not JSON"},
		{"op", "a-0", `{"reason":"` + strings.Repeat("x", 65<<10) + `"}`, 413, "the body is too large"},
	} {
		status, _, got := ask(t, test.who, http.MethodPost, "/approvals/"+test.id, test.body)
		said := fmt.Sprint(got["detail"])
		if status == http.StatusOK {
			text := func(name string) string { s, _ := got[name].(string); return s }
			said = strings.Join([]string{text("state"), text("scope"), text("by"), text("note")}, " ")
		}
		if status != test.status || !strings.Contains(said, test.says) {
			t.Errorf("%s %s %.60s: %d %s", test.who, test.id, test.body, status, said)
		}
	}
	if status, _, _ := ask(t, "op", http.MethodPost, "/approvals/a-0", `{"decision":"allow"}`, "Content-Type: text/plain"); status != http.StatusUnsupportedMediaType {
		t.Errorf("what a page can send unasked: %d", status)
	}
	if status, _, got := ask(t, "bob", http.MethodGet, "/approvals/a-0", ""); status != http.StatusNotFound {
		t.Errorf("bob sees ada's: %d %v", status, got)
	}
	if status, _, got := ask(t, "bob", http.MethodGet, "/approvals/a-1", ""); status != http.StatusOK || got["tool"] != "crm.delete" {
		t.Errorf("bob sees his: %d %v", status, got)
	}
	if _, _, got := ask(t, "", http.MethodGet, "/approvals", ""); len(got["approvals"].([]any)) != 0 {
		t.Errorf("nobody sees %v", got)
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
		{http.MethodGet, "/executions?limit=1&limit=2", 400, "limit must be there once"},
		{http.MethodGet, "/executions?princpal=bob", 400, "the query has no princpal"},
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

// fleet has two gateways and a worker.
type fleet struct{}

func (fleet) Report(context.Context) (cluster.Members, error) {
	began := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	return cluster.Members{
		Gateways: []cluster.Gateway{
			{ID: "g-one", Self: true, Host: "one", PID: 1, Version: "1.2.3", State: cluster.Alive, Since: began, Beaten: began, Load: store.Load{Running: 1, Seats: 8}},
			{ID: "g-two", Host: "two", PID: 2, Version: "1.2.2", State: cluster.Lost, Since: began, Beaten: began},
		},
		Workers: []cluster.Worker{{Name: "w1", Instance: "i-1", Version: "1.2.3", State: cluster.Draining, Since: began, Beaten: began, Seats: 4, Busy: 2, Labels: map[string]string{"zone": "a"}, Lacks: []string{"zone=b"}}},
		Servers: []cluster.Server{{Name: "nats-0", Connected: true, State: cluster.Behind, Streams: 40, Leads: 13, Behind: 1, Lag: 7}},
	}, nil
}

// shelf has two plugins.
type shelf struct{}

func (shelf) List() []plugin.Plugin {
	return []plugin.Plugin{
		{Name: "rates", Version: "1.0.0", Folder: "/etc/sallyport/plugins/rates", Status: plugin.Ready, Offers: []string{"tools rate"}, Asks: []string{"hosts rates.example.com"}},
		{Name: "rules", Status: plugin.Off, Reason: "it exited"},
	}
}
