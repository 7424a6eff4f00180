package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/gateway/httpapi"
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
	// noEngine asks a gateway that runs no workflows.
	noEngine bool
	// verbs are another gateway than house.
	verbs httpapi.Verbs
}

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
	{status: 200, who: "op", route: "GET /executions", path: "/executions?limit=2"},
	{status: 200, who: "ada", route: "GET /executions/{id}", path: "/executions/e-0"},
	{status: 404, who: "ada", route: "GET /executions/{id}", path: "/executions/e-1"},
	{status: 200, who: "op", route: "GET /workflows"},
	{status: 200, who: "ada", route: "GET /workflows/{name}", path: "/workflows/digest"},
	{status: 404, who: "ada", route: "GET /workflows/{name}", path: "/workflows/inner"},
	{status: 200, who: "ada", route: "POST /workflows/{name}/plan", path: "/workflows/digest/plan", body: `{"inputs":{"a":1}}`},
	{status: 200, who: "ada", route: "POST /workflows/{name}/runs", path: "/workflows/digest/runs", body: `{"inputs":{"a":[1]},"key":"k"}`},
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
	c := newContract(t)
	for _, p := range promises {
		c.check(t, p)
	}
	for _, p := range c.refusals() {
		c.check(t, p)
	}
	for name, op := range c.operations {
		for status := range op["responses"].(map[string]any) {
			if !c.seen[name+" "+status] && !slices.Contains(elsewhere, status) {
				t.Errorf("%s says that it may answer %s, and nothing here has it do so: add a promise, or mend the table of routes", name, status)
			}
		}
	}
}

// contract is the document, read.
type contract struct {
	doc        map[string]any
	operations map[string]map[string]any
	compiler   *jsonschema.Compiler
	seen       map[string]bool
}

func newContract(t *testing.T) *contract {
	t.Helper()
	w := send(t, promise{route: "GET /openapi.json", path: "/openapi.json?profile=clients"})
	value, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	doc := value.(map[string]any)
	c := &contract{doc: doc, operations: map[string]map[string]any{}, compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			c.operations[strings.ToUpper(method)+" "+path] = op.(map[string]any)
		}
	}
	for _, schema := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		schema.(map[string]any)["unevaluatedProperties"] = false // what is not said must not come
	}
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("mem:///openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return c
}

// refusals are what every route of a kind refuses.
func (c *contract) refusals() (all []promise) {
	for name, op := range c.operations {
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
		if strings.HasPrefix(path, "/workflows") || strings.HasPrefix(path, "/runs") {
			add(404, func(p *promise) { p.noEngine = true })
		}
		if op["requestBody"] == nil || method == http.MethodPut {
			continue
		}
		for _, body := range []string{"", `[]`, `{"nonsense":1}`, `{} {}`} {
			add(400, func(p *promise) { p.body = body })
		}
		add(415, func(p *promise) { p.body, p.contentType = "{}", "text/plain" })
		add(413, func(p *promise) { p.body = `{"` + strings.Repeat("x", 1<<20) + `":1}` })
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
	opts := options()
	if p.noEngine {
		opts.Workflows = nil
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

// check asks, and compares the answer with the document.
func (c *contract) check(t *testing.T, p promise) {
	t.Helper()
	op := c.operations[p.route]
	if op == nil {
		t.Errorf("%s is not in the document", p.route)
		return
	}
	w := send(t, p)
	name := fmt.Sprintf("%s %s %s %.60s", p.who, p.route, p.path, p.body)
	if w.Code != p.status {
		t.Errorf("%s: %d, not %d: %.300s", name, w.Code, p.status, w.Body)
		return
	}
	status := strconv.Itoa(w.Code)
	c.seen[p.route+" "+status] = true
	at := pointer("paths", p.route[strings.Index(p.route, " ")+1:], strings.ToLower(p.route[:strings.Index(p.route, " ")]))
	response, ok := op["responses"].(map[string]any)[status].(map[string]any)
	if !ok {
		t.Errorf("%s: the document does not have status %s: add it to the route with failsWith", name, status)
		return
	}
	place := at + pointer("responses", status)
	if to, ok := response["$ref"].(string); ok {
		place = to[1:]
		response = c.part(to)
	}
	if w.Code == http.StatusOK && p.body != "" && op["requestBody"] != nil {
		c.fits(t, name+": the request", at+pointer("requestBody", "content", "application/json", "schema"), []byte(p.body))
	}
	kind := w.Header().Get("Content-Type")
	content, _ := response["content"].(map[string]any)
	if content[kind] == nil {
		t.Errorf("%s: the answer is %q, the document has %v", name, kind, slices.Collect(maps.Keys(content)))
		return
	}
	if strings.HasSuffix(kind, "json") {
		c.fits(t, name, place+pointer("content", kind, "schema"), w.Body.Bytes())
	}
	if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") == "" {
		t.Errorf("%s: the headers are %v", name, w.Header())
	}
}

// part is what a reference leads to.
func (c *contract) part(reference string) map[string]any {
	at := c.doc
	for name := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
		at, _ = at[name].(map[string]any)
	}
	return at
}

// pointer is a JSON pointer.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name))
	}
	return b.String()
}

// fits checks a value by the schema that is at a place of the document.
func (c *contract) fits(t *testing.T, what, place string, data []byte) {
	t.Helper()
	schema, err := c.compiler.Compile("mem:///openapi.json#" + place)
	if err != nil {
		t.Fatalf("%s: %v", place, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Errorf("%s: %v in %.300s", what, err, data)
		return
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s: %v\nin %.1000s", what, err, data)
	}
}

// TestWrongMethods: each path says what it takes.
func TestWrongMethods(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	for name := range c.operations {
		_, path, _ := strings.Cut(name, " ")
		w := send(t, promise{who: "op", route: "PATCH " + path})
		c.fits(t, name, "/components/schemas/Problem", w.Body.Bytes())
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

// FuzzRequests: whatever is asked, nothing is our fault, and what is refused is a problem document.
func FuzzRequests(f *testing.F) {
	for _, p := range promises {
		method, path, _ := strings.Cut(p.route, " ")
		if p.path != "" {
			path = p.path
		}
		f.Add(method, path, "application/json", p.body, p.who == "op")
	}
	f.Add("GET", "/runs?wait=1&wait=%zz", "", "", false)
	f.Add("POST", "//approvals/%2e%2e/a", "application/json; charset=x", "{\"decision\":\"\xff\"}", true)
	verbs := house{}
	problem := reflect.TypeFor[httpapi.Problem]()
	f.Fuzz(func(t *testing.T, method, path, kind, body string, operator bool) {
		target, err := url.ParseRequestURI(path)
		if err != nil || strings.Contains(path, "wait=") || target.Host != "" {
			return
		}
		ctx := tool.WithPrincipal(t.Context(), "ada")
		if operator {
			ctx = tool.WithOperator(ctx, "fuzz")
		}
		r := (&http.Request{Method: method, URL: target, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Host: "localhost"}).WithContext(ctx)
		w := httptest.NewRecorder()
		httpapi.New(verbs, options()).ServeHTTP(w, r)
		switch {
		case w.Code >= 500 && w.Code != http.StatusServiceUnavailable:
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
