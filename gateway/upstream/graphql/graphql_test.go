package graphql_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/gateway/upstream/graphql"
)

func TestTools(t *testing.T) {
	t.Parallel()
	api := load(t, newServer(t).options())
	want := []string{"createIssue", "deleteIssue", "describe_type", "issue", "issues", "mutation_save", "node", "query_save", "search", "setPoints", "total", "version", "viewer"}
	if got := api.Names(); !slices.Equal(got, want) {
		t.Errorf("the tools are %q", got)
	}
	if len(api.Skipped) != 1 || !strings.Contains(api.Skipped[0], "query all") {
		t.Errorf("skipped: %q", api.Skipped)
	}
	compile(t, api)
}

// compile fails the test if a schema of a tool is invalid, and returns the size of the largest definition.
func compile(t *testing.T, api *graphql.API) (largest int) {
	t.Helper()
	c := jsonschema.NewCompiler()
	for _, raw := range api.Definitions() {
		largest = max(largest, len(raw))
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		tool := v.(map[string]any)
		for _, key := range []string{"inputSchema", "outputSchema"} {
			if tool[key] == nil {
				continue
			}
			at := fmt.Sprintf("mem:///%v/%s.json", tool["name"], key)
			if err := c.AddResource(at, tool[key]); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Compile(at); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
	}
	return largest
}

// TestCalls: what the server receives is what was meant, and its answers are the results.
func TestCalls(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	api := load(t, s.options())
	ann := `{"id":"u1","login":"ann"}`
	issue := func(id, title, points string) string {
		return `{"id":"` + id + `","title":"` + title + `","state":"OPEN","created":"2026-01-0` + id + `","points":` + points + `,"author":` + ann + `,"labels":[{"color":"red","text":"bug"}]}`
	}
	for _, c := range []struct{ name, args, structured, text string }{
		{"version", ``, `{"result":"v1"}`, ""},
		{"total", `{"min":3}`, `{"result":"12345678901234567890"}`, ""},
		{"issue", `{"id":"4"}`, `{"result":null}`, ""},
		{"issue", `{"id":"1","select":"{ title author { login } }"}`, `{"result":{"title":"one","author":{"login":"ann"}}}`, ""},
		{"issue", `{"id":"1","select":"title author"}`, `{"result":{"title":"one","author":` + ann + `}}`, ""}, // completed
		{"issue", `{"id":"2","select":"{ c: comments(first: 1) { nodes { body } } ... on Issue { id } }"}`, `{"result":{"c":{"nodes":[{"body":"hello"}]},"id":"2"}}`, ""},
		{"issues", `{"first":2,"filter":{"text":"o","and":[{"state":"OPEN"}]},"select":"{ edges { node { title } } }"}`, `{"edges":[{"node":{"title":"one"}},{"node":{"title":"two"}}]}`, ""},
		{"search", `{"text":"three","select":"{ ... on Issue { title } ... on User { login } }"}`, `{"result":[{"title":"three"},{"login":"ann"}]}`, ""},
		{"node", `{"id":"x"}`, `{"result":{"__typename":"User","id":"u1"}}`, ""},
		{"createIssue", `{"input":{"title":"\" } mutation { deleteIssue(id: 1) }","points":null}}`, `{"result":{"issue":{"id":"9","title":"\" } mutation { deleteIssue(id: 1) }","state":"OPEN"},"clientMutationId":null}}`, ""},
		{"setPoints", `{"id":"1","points":7,"select":"points"}`, `{"points":7}`, ""},
		{"deleteIssue", `{"id":"1"}`, `{"result":true}`, ""},
		{"query_save", ``, `{"result":"query"}`, ""},
		{"mutation_save", `{"text":"it"}`, `{"result":"saved it"}`, ""},
		{"describe_type", `{"name":"User"}`, "", "# A person.\ntype User {\n  id: ID!\n  login: String!\n  secret: String\n  manager: User\n  issues(first: Int!): [Issue!]!\n}"},
	} {
		r := call(t, api, c.name, c.args)
		if r.IsError || string(r.Structured) != c.structured || c.text != "" && r.Content[0].Text != c.text {
			t.Errorf("%s %s: %t %s %q", c.name, c.args, r.IsError, r.Structured, r.Content)
		}
	}
	r := call(t, api, "issues", `{"first":1}`)
	if want := `{"totalCount":3,"edges":[{"node":` + strings.Replace(issue("1", "one", "null"), `,"labels":[{"color":"red","text":"bug"}]`, "", 1) + `}],"pageInfo":{"hasNextPage":false,"endCursor":null}}`; string(r.Structured) != want {
		t.Errorf("a page: %s, not %s", r.Structured, want)
	}
}

// TestRefusedFields: a default selection does not ask again for what the caller may not read, and one of the caller says what is missing.
func TestRefusedFields(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	api := load(t, s.options())
	for range 2 {
		if r := call(t, api, "viewer", ""); r.IsError || string(r.Structured) != `{"id":"u1","login":"ann","manager":null}` {
			t.Errorf("the viewer: %s %q", r.Structured, r.Content)
		}
	}
	if asked := s.requests(t)[1:]; len(asked) != 3 || !strings.Contains(asked[0].Query, "secret") || strings.Contains(asked[1].Query+asked[2].Query, "secret") {
		t.Errorf("the requests: %v", asked)
	}
	r := call(t, api, "viewer", `{"select":"login secret"}`)
	if text := r.Content[0].Text; !r.IsError || !strings.Contains(text, "secret: no right to read secret (FORBIDDEN)") || !strings.Contains(text, `"login":"ann"`) {
		t.Errorf("a refused field: %q", text)
	}
}

// TestSelections: a selection that cannot be is refused with what would be right, before a request is sent.
func TestSelections(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	api := load(t, s.options())
	before := len(s.requests(t))
	for name, c := range map[string]struct{ tool, args, want string }{
		"unknown field":     {"issue", `{"id":"1","select":"{ titel }"}`, `Issue has no field "titel"; it has id, title, state`},
		"unknown below":     {"issue", `{"id":"1","select":"author { name }"}`, `User has no field "name"; it has id, login`},
		"another operation": {"issue", `{"id":"1","select":"{ id } mutation { deleteIssue(id: 1) }"}`, "must be one selection"},
		"closes the field":  {"issue", `{"id":"1","select":"id } } mutation M { deleteIssue(id: 1) "}`, "not a selection"},
		"a mutation":        {"issue", `{"id":"1","select":"mutation { deleteIssue(id: 1) }"}`, `has no field "mutation"`},
		"named fragment":    {"issue", `{"id":"1","select":"{ ...F } fragment F on Issue { id }"}`, "must be one selection"},
		"back to the root":  {"createIssue", `{"input":{"title":"x"},"select":"query { version }"}`, "leads back to all queries"},
		"fragment of root":  {"issue", `{"id":"1","select":"... on Query { version }"}`, "there is no type"},
		"introspection":     {"issue", `{"id":"1","select":"{ __schema { types { name } } }"}`, "has no field"},
		"union":             {"search", `{"text":"x","select":"title"}`, "use ... on TYPE { }"},
		"alias that lies":   {"issue", `{"id":"1","select":"{ title: id }"}`, "the alias title is the name of another field"},
		"missing argument":  {"viewer", `{"select":"{ issues { id } }"}`, "first"},
		"a plain field":     {"issue", `{"id":"1","select":"{ title { x } }"}`, "x"},
		"a variable":        {"issue", `{"id":"1","select":"{ comments(first: $n) { nodes { id } } }"}`, "$n"},
		"deep":              {"viewer", `{"select":"` + strings.Repeat("manager {", 3000) + `"}`, "select"},
		"unknown argument":  {"version", `{"select":"x"}`, `unknown argument "select"`},
		"no text":           {"issue", `{"id":"1","select":["id"]}`, "select must be a text"},
		"no argument":       {"issue", `{}`, "the argument id is missing"},
		"unknown type":      {"describe_type", `{"name":"Usr"}`, "did you mean User?"},
		"no tool":           {"all", `{}`, "there is no tool"},
	} {
		r := call(t, api, c.tool, c.args)
		if !r.IsError || !strings.Contains(r.Content[0].Text, c.want) {
			t.Errorf("%s: %s %q", name, r.Structured, r.Content)
		}
	}
	if after := len(s.requests(t)); after != before {
		t.Errorf("%d requests were sent", after-before)
	}
}

// TestNull: in a mutation a null is not the same as no argument.
func TestNull(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	api := load(t, s.options())
	call(t, api, "setPoints", `{"id":"2","points":null,"select":"points"}`)
	call(t, api, "setPoints", `{"id":"2","select":"points"}`)
	asked := s.requests(t)[1:]
	if v, has := asked[0].Variables["points"]; !has || v != nil {
		t.Errorf("null: %v", asked[0].Variables)
	}
	if _, has := asked[1].Variables["points"]; has {
		t.Errorf("nothing: %v", asked[1].Variables)
	}
}

// TestSchemaFiles: a schema is read from a file in both forms, and makes the same tools.
func TestSchemaFiles(t *testing.T) {
	t.Parallel()
	const sdl = "type Query { \"Ask.\" a(x: Int = 3, y: [String!]): [A] @cost(value: 1) }\ntype A @key(fields: \"id\") { id: ID! a: A }"
	const introspected = `{"data":{"__schema":{"queryType":{"name":"Query"},"types":[
		{"kind":"OBJECT","name":"Query","fields":[{"name":"a","description":"Ask.","args":[{"name":"x","type":{"kind":"SCALAR","name":"Int"},"defaultValue":"3"},{"name":"y","type":{"kind":"LIST","ofType":{"kind":"NON_NULL","ofType":{"kind":"SCALAR","name":"String"}}}}],"type":{"kind":"LIST","ofType":{"kind":"OBJECT","name":"A"}}}]},
		{"kind":"OBJECT","name":"A","fields":[{"name":"id","args":[],"type":{"kind":"NON_NULL","ofType":{"kind":"SCALAR","name":"ID"}}},{"name":"a","args":[],"type":{"kind":"OBJECT","name":"A"}}]},
		{"kind":"SCALAR","name":"Int"},{"kind":"SCALAR","name":"ID"},{"kind":"SCALAR","name":"String"}]}}}`
	first := load(t, graphql.Options{Schema: file(t, sdl)})
	second := load(t, graphql.Options{Schema: file(t, introspected)})
	for i, d := range first.Definitions() {
		if other := second.Definitions()[i]; string(d) != string(other) {
			t.Errorf("%s\n%s", d, other)
		}
	}
}

// TestOneOf: exactly one member of an input object with @oneOf is given.
func TestOneOf(t *testing.T) {
	t.Parallel()
	api := load(t, graphql.Options{Schema: file(t, "type Query { a(by: By!): Int } input By @oneOf { id: ID name: String }")})
	if text := string(api.Definitions()[0]); !strings.Contains(text, `"minProperties":1,"maxProperties":1`) {
		t.Error(text)
	}
}

func TestBadSchemas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                    "no query and no mutation",
		"type Query {":        "the GraphQL schema is invalid",
		"type Query { a: B }": "B",
		"openapi: 3.0.0":      "the GraphQL schema is invalid",
		`{"data":{}}`:         "no __schema",
		`{"errors":[{"message":"introspection is off"}]}`:                                                                "introspection is off",
		`{"__schema":{"queryType":{"name":"Query"},"types":[{"kind":"OBJECT","name":"Que ry","fields":[]}]}}`:            "not a name",
		`{"__schema":{"queryType":{"name":"Query"},"types":[{"kind":"OBJECT","name":"Query","fields":[{"name":"a"}]}]}}`: "a type is missing",
		`{"__schema":{"types":[{"kind":"UNION","name":"U","possibleTypes":[{"name":"Gone"}]}]}}`:                         "Gone",
	} {
		if _, err := graphql.Load(t.Context(), graphql.Options{Schema: file(t, text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	if _, err := graphql.Load(t.Context(), graphql.Options{Schema: "/nowhere/schema"}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}

// TestHostileServer: no answer of a server breaks more than its own call.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	var answer func(w http.ResponseWriter, r *http.Request)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer s.Close()
	body := func(status int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = w.Write([]byte(text)) }
	}
	api := load(t, graphql.Options{Endpoint: s.URL, Transport: s.Client().Transport, Schema: file(t, "type Query { a: String! }"), MaxResponse: 2000})
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		"not JSON":     {body(200, "<html>"), "not one of GraphQL: <html>"},
		"a status":     {body(502, "bad gateway"), "HTTP 502 Bad Gateway: bad gateway"},
		"an error":     {body(400, `{"errors":[{"message":"no\u001b[2J","path":["a"]}]}`), "no"},
		"no data":      {body(200, `{}`), "not one of GraphQL"},
		"data is text": {body(200, `{"data":"x"}`), "not one of GraphQL"},
		"too large":    {body(200, `{"data":{"a":"`+strings.Repeat("x", 3000)+`"}}`), "more than 2000 bytes"},
		"deep":         {body(200, `{"data":{"a":`+strings.Repeat("[", 900)+strings.Repeat("]", 900)+`}}`), "not one of GraphQL"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/", http.StatusTemporaryRedirect)
		}, "which is not followed"},
	} {
		answer = c.answer
		r := call(t, api, "a", "{}")
		if !r.IsError || !strings.Contains(r.Content[0].Text, c.want) || strings.Contains(r.Content[0].Text, "\x1b") {
			t.Errorf("%s: %s %q", name, r.Structured, r.Content)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	const sdl = "type Query { user: String users: String } type Mutation { addUser: String delUser: String }"
	for _, c := range []struct {
		include, exclude []string
		want             string
	}{
		{nil, nil, "addUser delUser describe_type user users"},
		{[]string{"query:*"}, nil, "describe_type user users"},
		{[]string{"*User"}, []string{"mutation:del*"}, "addUser describe_type"},
	} {
		api := load(t, graphql.Options{Schema: file(t, sdl), Include: c.include, Exclude: c.exclude})
		if got := strings.Join(api.Names(), " "); got != c.want {
			t.Errorf("%q %q: %s", c.include, c.exclude, got)
		}
	}
}

// TestGitHub: a large real schema makes tools with valid schemas, within the limits.
func TestGitHub(t *testing.T) {
	t.Parallel()
	api := load(t, graphql.Options{Schema: file(t, github(t))})
	if n := len(api.Definitions()); n < 250 || len(api.Skipped) > 1 {
		t.Errorf("%d tools, skipped %q", n, api.Skipped)
	}
	t.Logf("%d tools, the largest of %d bytes", len(api.Definitions()), compile(t, api))
}

func FuzzSchema(f *testing.F) {
	f.Add("type Query { a(x: I): A } input I { i: [I!] @x } type A { a: A b: U } union U = A")
	f.Add(`{"__schema":{"queryType":{"name":"Query"},"types":[{"kind":"OBJECT","name":"Query","fields":[{"name":"a","args":[{"name":"x","type":{"kind":"LIST","ofType":{"kind":"SCALAR","name":"Int"}},"defaultValue":"[1]"}],"type":{"kind":"SCALAR","name":"Int"}}]},{"kind":"SCALAR","name":"Int"}]}}`)
	f.Add("schema { query: Q mutation: Q } type Q { q: Q a(select: Int): [[Q]] } interface N implements N { id: ID }")
	f.Fuzz(func(t *testing.T, text string) {
		api, err := graphql.Load(t.Context(), graphql.Options{Schema: file(t, text), Transport: http.NewFileTransport(http.Dir(t.TempDir()))})
		if err != nil {
			return
		}
		for _, raw := range api.Definitions() {
			if !json.Valid(raw) {
				t.Errorf("%s", raw)
			}
		}
		for _, name := range api.Names() {
			_, _ = api.Call(t.Context(), name, json.RawMessage(`{"name":"Query","select":"{ id a q { a } }"}`))
		}
	})
}

func FuzzSelect(f *testing.F) {
	for _, text := range []string{"id", "{ id a { id } }", "{ ... on A { id } }", "{ id } mutation { x }", "{ a: id @skip(if: true) }", "\"\"\"{", "{ list(n: [1, {a: 2}]) { id } }"} {
		f.Add(text)
	}
	var sent []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Query string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		sent = append(sent, body.Query)
		_, _ = w.Write([]byte(`{"data":{"a":null}}`))
	}))
	f.Cleanup(s.Close)
	api, err := graphql.Load(f.Context(), graphql.Options{Endpoint: s.URL, Schema: file(f, "type Query { a: A other: String } type Mutation { other: String } type A { id: ID a: A list(n: [Int]): [A] query: Query }")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sent = nil
		args, err := json.Marshal(map[string]string{"select": text})
		if err != nil {
			return
		}
		_, _ = api.Call(t.Context(), "a", args)
		for _, q := range sent {
			if strings.Contains(q, "other") || strings.Contains(q, "mutation") && !strings.Contains(text, "mutation") {
				t.Errorf("%q is sent as %q", text, q)
			}
		}
	})
}
