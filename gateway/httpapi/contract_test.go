package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/gateway/httpapi"
	"sallyport/internal/testutil/openapi"
	"sallyport/internal/tool"
)

// A promise is a request, and the status that it is answered with. To add a route, add one with status 200, and one for
// each status that is its own: what every route of its kind refuses is asked of all of them by [refusals].
type promise struct {
	// route is as in the table. path is what is asked for, with a query perhaps; "" is the route's.
	status      int
	who, route  string
	path, body  string
	contentType string
	// noEngine asks a gateway that runs no workflows, and measures nothing.
	noEngine bool
	// ifMatch is the header.
	ifMatch string
	// events asks for a stream of them.
	events bool
	// verbs are another gateway than house.
	verbs httpapi.Service
}

const (
	callRoute = "POST /tools/call/{upstream}/{tool}"
	heldRoute = "POST /upstreams/held/{tool}"

	restartRoute = "POST /upstreams/restart/{upstream}"
)

var promises = []promise{
	{status: 200, who: "", route: "GET /openapi.json"},
	{status: 200, who: "", route: "GET /openapi.json", path: "/openapi.json?profile=tools"},
	{status: 200, who: "only metrics", route: "GET /health"},
	{status: 200, who: "op", route: "GET /health"},
	{status: 200, who: "ada", route: "GET /readyz"},
	{status: 503, who: "ada", route: "GET /readyz", verbs: unready{}},
	{status: 200, who: "op", route: "GET /approvals"},
	{status: 200, who: "", route: "GET /approvals"},
	{status: 200, who: "ada", route: "GET /approvals/{id}", path: "/approvals/a-0"},
	{status: 404, who: "bob", route: "GET /approvals/{id}", path: "/approvals/a-0"},
	{status: 200, who: "op", route: "POST /approvals/{id}", path: "/approvals/a-0", body: `{"decision":"allow","scope":"session","reason":"fine"}`},
	{status: 404, who: "op", route: "POST /approvals/{id}", path: "/approvals/a-9", body: `{"decision":"deny"}`},
	{status: 200, who: "ada", route: "POST /execute", body: `{"code":"print","language":"python","timeout":1.5,"workspace":"w","variables":{"a":[1]}}`},
	{status: 200, who: "ada", route: "POST /execute", body: `{"code":"fail"}`},
	{status: 200, who: "ada", route: "POST /execute", body: `{"code":"hold"}`},
	{status: 404, who: "ada", route: "POST /execute", body: `{"code":"lost"}`},
	{status: 503, who: "ada", route: "POST /execute", body: `{"code":"busy"}`},
	{status: 200, who: "ada", route: "POST /execute", body: `{"code":"print"}`, events: true},
	{status: 200, who: "ada", route: "POST /execute", body: `{"code":"broken"}`, events: true},
	{status: 503, who: "ada", route: "POST /execute", body: `{"code":"busy"}`, events: true},
	{status: 413, who: "ada", route: "POST /execute", body: `{"code":"` + strings.Repeat("x", 4<<20) + `"}`, events: true},
	{status: 200, who: "op", route: "GET /executions/live"},
	{status: 200, who: "ada", route: "GET /executions/{id}/output", path: "/executions/e-live/output"},
	{status: 404, who: "bob", route: "GET /executions/{id}/output", path: "/executions/e-9/output"},
	{status: 409, who: "ada", route: "GET /executions/{id}/output", path: "/executions/e-0/output"},
	{status: 200, who: "ada", route: "POST /executions/{id}/cancel", path: "/executions/e-live/cancel", body: `{}`},
	{status: 404, who: "ada", route: "POST /executions/{id}/cancel", path: "/executions/e-9/cancel", body: `{}`},
	{status: 200, who: "ada", route: "GET /tools", path: "/tools?upstream=docs&limit=2&cursor=docs.t0"},
	{status: 200, who: "ada", route: "GET /tools/search", path: "/tools/search?q=mail&detail=full&limit=3"},
	{status: 404, who: "ada", route: "GET /tools/search", path: "/tools/search?upstream=none"},
	{status: 200, who: "ada", route: callRoute, path: "/tools/call/docs/t0", body: `{"arguments":{"a":[1]}}`},
	{status: 202, who: "ada", route: callRoute, path: "/tools/call/docs/t2", body: `{}`},
	{status: 404, who: "ada", route: callRoute, path: "/tools/call/docs/t9", body: `{}`},
	{status: 409, who: "ada", route: callRoute, path: "/tools/call/docs/failed", body: `{}`},
	{status: 502, who: "ada", route: callRoute, path: "/tools/call/docs/upstream", body: `{}`},
	{status: 503, who: "ada", route: callRoute, path: "/tools/call/docs/canceled", body: `{}`},
	{status: 504, who: "ada", route: callRoute, path: "/tools/call/docs/timeout", body: `{}`},
	{status: 200, who: "ada", route: "GET /tools/info/{upstream}/{tool}", path: "/tools/info/crm/evil"},
	{status: 404, who: "ada", route: "GET /tools/info/{upstream}/{tool}", path: "/tools/info/crm/none"},
	{status: 200, who: "ada", route: "GET /executions/{id}/calls", path: "/executions/e-0/calls"},
	{status: 404, who: "bob", route: "GET /executions/{id}/calls", path: "/executions/e-0/calls"},
	{status: 200, who: "ada", route: "GET /upstreams"},
	{status: 200, who: "op", route: "GET /upstreams/held"},
	{status: 200, who: "op", route: heldRoute, path: "/upstreams/held/crm.held", body: `{"digest":"aa"}`},
	{status: 409, who: "op", route: heldRoute, path: "/upstreams/held/crm.held", body: `{"digest":"bb"}`},
	{status: 404, who: "op", route: heldRoute, path: "/upstreams/held/crm.none", body: `{"digest":"bb"}`},
	{status: 200, who: "op", route: heldRoute + "/reject", path: "/upstreams/held/crm.held/reject", body: `{"digest":"aa","reason":"x"}`},
	{status: 409, who: "op", route: heldRoute + "/reject", path: "/upstreams/held/crm.held/reject", body: `{"digest":"bb","reason":"x"}`},
	{status: 404, who: "op", route: heldRoute + "/reject", path: "/upstreams/held/crm.none/reject", body: `{"digest":"bb"}`},
	{status: 200, who: "op", route: restartRoute, path: "/upstreams/restart/crm", body: `{}`},
	{status: 404, who: "op", route: restartRoute, path: "/upstreams/restart/none", body: `{}`},
	{status: 502, who: "op", route: restartRoute, path: "/upstreams/restart/down", body: `{}`},
	{status: 200, who: "op", route: "GET /upstreams/log/{upstream}", path: "/upstreams/log/crm"},
	{status: 404, who: "op", route: "GET /upstreams/log/{upstream}", path: "/upstreams/log/none"},
	{status: 200, who: "op", route: "GET /cluster"},
	{status: 404, who: "op", route: "GET /cluster", noEngine: true},
	{status: 200, who: "op", route: "GET /plugins"},
	{status: 404, who: "op", route: "GET /plugins", noEngine: true},
	{status: 200, who: "ada", route: "GET /skills"},
	{status: 200, who: "ada", route: "GET /skills/{name}", path: "/skills/sum"},
	{status: 404, who: "ada", route: "GET /skills/{name}", path: "/skills/none"},
	{status: 200, who: "ada", route: "GET /savings"},
	{status: 200, who: "op", route: "GET /timeline", path: "/timeline?range=7d"},
	{status: 200, who: "ada", route: "GET /budgets"},
	{status: 200, who: "op", route: "GET /audit", path: "/audit?limit=3"},
	{status: 404, who: "op", route: "GET /audit", path: "/audit?kind=nonsense"},
	{status: 200, who: "only metrics", route: "GET /metrics"},
	{status: 404, who: "only metrics", route: "GET /metrics", noEngine: true},
	{status: 200, who: "op", route: "GET /executions", path: "/executions?limit=2"},
	{status: 200, who: "ada", route: "GET /executions/{id}", path: "/executions/e-0"},
	{status: 404, who: "ada", route: "GET /executions/{id}", path: "/executions/e-1"},
	{status: 200, who: "op", route: "GET /workflows"},
	{status: 200, who: "ada", route: "GET /workflows/{name}", path: "/workflows/digest"},
	{status: 404, who: "ada", route: "GET /workflows/{name}", path: "/workflows/inner"},
	{status: 200, who: "ada", route: "POST /workflows/{name}/plan", path: "/workflows/digest/plan", body: `{"inputs":{"a":1}}`},
	{status: 200, who: "ada", route: "POST /workflows/{name}/runs", path: "/workflows/digest/runs", body: `{"inputs":{"a":[1]},"key":"k"}`},
	{status: 200, who: "ada", route: "POST /tasks", body: `{"task":"count the orders","only":["shop"],"args":{"month":"may"},"output":{"type":"integer"}}`},
	{status: 200, who: "ada", route: "POST /tasks", body: `{"task":"count the orders"}`, events: true},
	{status: 404, who: "ada", route: "POST /tasks", body: `{"task":"x","only":["nobody"]}`},
	{status: 200, who: "ada", route: "GET /tasks", path: "/tasks?limit=3"},
	{status: 200, who: "ada", route: "GET /tasks/{id}", path: "/tasks/t-ada?wait=1"},
	{status: 404, who: "bob", route: "GET /tasks/{id}", path: "/tasks/t-ada"},
	{status: 200, who: "ada", route: "POST /tasks/{id}/cancel", path: "/tasks/t-ada/cancel", body: `{}`},
	{status: 404, who: "bob", route: "POST /tasks/{id}/cancel", path: "/tasks/t-ada/cancel", body: `{}`},
	{status: 200, who: "ada", route: "POST /tasks/{id}/resume", path: "/tasks/t-ada/resume", body: `{}`},
	{status: 404, who: "bob", route: "POST /tasks/{id}/resume", path: "/tasks/t-ada/resume", body: `{}`},
	{status: 200, who: "ada", route: "GET /runs", path: "/runs?workflow=digest&status=waiting&limit=3"},
	{status: 200, who: "ada", route: "GET /runs/{id}", path: "/runs/r-ada"},
	{status: 404, who: "bob", route: "GET /runs/{id}", path: "/runs/r-ada"},
	{status: 200, who: "ada", route: "GET /runs/{id}/events", path: "/runs/r-ada/events?after=0"},
	{status: 200, who: "op", route: "POST /runs/{id}/cancel", path: "/runs/r-ada/cancel", body: `{}`},
	{status: 200, who: "ada", route: "POST /runs/{id}/resume", path: "/runs/r-ada/resume", body: `{}`},
	{status: 200, who: "ada", route: "POST /runs/{id}/replay", path: "/runs/r-ada/replay", body: `{"step":"x.y"}`},
	{status: 200, who: "ada", route: "POST /runs/{id}/answer", path: "/runs/r-ada/answer", body: `{"step":"ask","values":{"name":"x"}}`},
}

// elsewhere are the statuses that are not asked for here: the front wants tokens and counts requests, nothing of a house in memory
// is our fault, and who knows an ETag is in a test of its own.
var elsewhere = []string{"304", "401", "429", "500"}

// TestContract: every answer of every route is what the OpenAPI document says, in success and in failure; and every
// status that the document has is one that comes.
func TestContract(t *testing.T) {
	t.Parallel()
	doc := document(t)
	for _, p := range slices.Concat(promises, filePromises, refusals(doc)) {
		name := fmt.Sprintf("%s %s %s %.60s", p.who, p.route, p.path, p.body)
		w := send(t, p)
		if w.Code != p.status {
			t.Errorf("%s: %d, not %d: %.300s", name, w.Code, p.status, w.Body)
		}
		doc.Check(t, name, p.route, openapi.Answer{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()})
		if w.Code == http.StatusOK && p.body != "" && !strings.HasPrefix(p.route, "PUT") {
			doc.CheckRequest(t, name, p.route, []byte(p.body))
		}
	}
	for _, unseen := range doc.Unseen() {
		if !slices.Contains(elsewhere, unseen[len(unseen)-3:]) {
			t.Errorf("the document has %s, and nothing here has it come: add a promise, or mend the table of routes", unseen)
		}
	}
}

// document is the whole one, by the names of its operations.
func document(t *testing.T) *openapi.Document {
	t.Helper()
	return openapi.Read(t, send(t, promise{route: "GET /openapi.json", path: "/openapi.json?profile=clients"}).Body.Bytes())
}

// tooLarge is larger than any body may be.
var tooLarge = `{"` + strings.Repeat("x", 5<<20) + `":1}`

// refusals are what every route of a kind refuses.
func refusals(doc *openapi.Document) (all []promise) {
	for name, op := range doc.Operations() {
		method, path, _ := strings.Cut(name, " ")
		p := promise{who: "op", route: name, path: path, contentType: "application/json"}
		add := func(status int, change func(*promise)) {
			one := p
			one.status = status
			change(&one)
			all = append(all, one)
		}
		add(400, func(p *promise) { p.path += "?nonsense=1" })
		if op["x-scope"] != nil {
			add(403, func(p *promise) { p.who = "only none" })
		}
		if strings.HasPrefix(path, "/workflows") || strings.HasPrefix(path, "/runs") || strings.HasPrefix(path, "/tasks") {
			add(404, func(p *promise) { p.noEngine = true })
		}
		if op["requestBody"] == nil || method == http.MethodPut {
			continue
		}
		for _, body := range []string{"", `[]`, `{"nonsense":1}`, `{} {}`} {
			add(400, func(p *promise) { p.body = body })
		}
		add(415, func(p *promise) { p.body, p.contentType = "{}", "text/plain" })
		add(413, func(p *promise) { p.body = tooLarge })
	}
	return all
}

// send asks a gateway in memory.
func send(t *testing.T, p promise) *httptest.ResponseRecorder {
	t.Helper()
	method, path, _ := strings.Cut(p.route, " ")
	if p.path != "" {
		path = p.path
	}
	r := httptest.NewRequestWithContext(as(t.Context(), p.who), method, path, strings.NewReader(p.body))
	r.Header.Set("Content-Type", p.contentType)
	if p.contentType == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if p.ifMatch != "" {
		r.Header.Set("If-Match", p.ifMatch)
	}
	if p.events {
		r.Header.Set("Accept", "text/html;q=0.1, Text/Event-Stream; q=0.9")
	}
	opts := options()
	if p.noEngine {
		opts.Workflows, opts.Tasks, opts.Plugins, opts.Cluster, opts.Telemetry = nil, nil, nil, nil, nil
	}
	w := httptest.NewRecorder()
	if p.verbs == nil {
		p.verbs = house{}
	}
	httpapi.New(p.verbs, opts).ServeHTTP(w, r)
	return w
}

// as is a context of somebody: "op" is an operator, "only SCOPE" has no other scope.
func as(ctx context.Context, who string) context.Context {
	ctx = tool.WithPrincipal(ctx, who)
	if who == "op" {
		return tool.WithOperator(ctx, "cli")
	}
	if scope, ok := strings.CutPrefix(who, "only "); ok {
		return tool.WithScopes(ctx, []tool.Scope{tool.Scope(scope)})
	}
	return ctx
}

// TestWrongMethods: each path says what it takes.
func TestWrongMethods(t *testing.T) {
	t.Parallel()
	doc := document(t)
	for name := range doc.Operations() {
		_, path, _ := strings.Cut(name, " ")
		w := send(t, promise{who: "op", route: "PATCH " + path})
		doc.Fits(t, name, "/components/schemas/Problem", w.Body.Bytes())
		if w.Code != http.StatusMethodNotAllowed || !strings.Contains(w.Header().Get("Allow"), name[:strings.Index(name, " ")]) {
			t.Errorf("PATCH %s: %d, allowed are %q", path, w.Code, w.Header().Get("Allow"))
		}
	}
}

// TestDocumentOfItself: who has the document need not get it again, and what a version has is told apart.
func TestDocumentOfItself(t *testing.T) {
	t.Parallel()
	ask := func(version, known string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", nil)
		r.Header.Set("If-None-Match", known)
		w := httptest.NewRecorder()
		httpapi.New(house{}, &httpapi.Options{Version: version}).ServeHTTP(w, r)
		return w
	}
	first := ask("1.0", "")
	tag := first.Header().Get("ETag")
	if !strings.Contains(first.Body.String(), `"version":"1.0"`) || tag == "" {
		t.Errorf("ETag %s of %.200s", tag, first.Body)
	}
	if again := ask("1.0", `"x", `+tag); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("known already: %d %.100s", again.Code, again.Body)
	}
	if newer := ask("1.1", tag); newer.Code != http.StatusOK {
		t.Errorf("another version: %d", newer.Code)
	}
}

// TestGuides: a model is told as much of a tool as over MCP, and what is behind the gateway only who may read.
func TestGuides(t *testing.T) {
	t.Parallel()
	behind := "crm"
	api := httpapi.New(house{}, &httpapi.Options{Guides: func() map[string]string {
		return map[string]string{"execute_code": "Run a program. Upstreams: " + behind}
	}})
	get := func(who, path string) string {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequestWithContext(as(t.Context(), who), http.MethodGet, path, nil))
		return w.Body.String()
	}
	for _, path := range []string{"/openapi.json", "/openapi.json?profile=tools"} {
		if got := get("ada", path); !strings.Contains(got, `"description":"Run a program. Upstreams: crm"`) {
			t.Errorf("%s: %.3000s", path, got)
		}
	}
	if got := get("only metrics", "/openapi.json"); strings.Contains(got, "crm") || !strings.Contains(got, "execute_code") {
		t.Errorf("who may not read is told of %.3000s", got)
	}
	behind = "shop"
	if got := get("ada", "/openapi.json"); !strings.Contains(got, "Upstreams: shop") || strings.Contains(got, "crm") {
		t.Errorf("after a change: %.3000s", got)
	}
}

// FuzzRequests: whatever is asked, nothing is our fault, and what is refused is a problem document.
func FuzzRequests(f *testing.F) {
	for _, p := range promises {
		method, path, _ := strings.Cut(p.route, " ")
		if p.path != "" {
			path = p.path
		}
		f.Add(method, path, "application/json", p.body, p.who == "op", p.events)
	}
	f.Add("GET", "/runs?wait=1&wait=%zz", "", "", false, false)
	f.Add("POST", "//approvals/%2e%2e/a", "application/json; charset=x", "{\"decision\":\"\xff\"}", true, true)
	verbs := house{}
	problem := reflect.TypeFor[httpapi.Problem]()
	f.Fuzz(func(t *testing.T, method, path, kind, body string, operator, events bool) {
		target, err := url.ParseRequestURI(path)
		if err != nil || strings.Contains(path, "wait=") || target.Host != "" {
			return
		}
		ctx := tool.WithPrincipal(t.Context(), "ada")
		if operator {
			ctx = tool.WithOperator(ctx, "fuzz")
		}
		r := (&http.Request{Method: method, URL: target, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Host: "localhost"}).WithContext(ctx)
		if events {
			r.Header.Set("Accept", "text/event-stream")
		}
		w := httptest.NewRecorder()
		httpapi.New(verbs, options()).ServeHTTP(w, r)
		switch {
		case w.Code == http.StatusInternalServerError:
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		case w.Code >= 400:
			got := reflect.New(problem).Interface()
			dec := json.NewDecoder(w.Body)
			dec.DisallowUnknownFields()
			if err := dec.Decode(got); err != nil || w.Header().Get("Content-Type") != "application/problem+json" || !utf8.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s: %d %v %v", method, path, w.Code, err, w.Header())
			}
		}
	})
}
