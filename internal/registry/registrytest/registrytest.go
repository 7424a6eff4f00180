// Package registrytest has a registry of MCP servers for tests. It serves the read operations of the official API, version
// 0.1, over TLS, and is as strict: a request that the API does not describe fails the test, and so does an entry that its
// schema does not allow.
package registrytest

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/internal/testutil/tlstest"
)

// Registry is a running registry. Its URL is that of the embedded server.
type Registry struct {
	*httptest.Server
	t       testing.TB
	entries []entry
	answers map[string]string
}

// entry is a version of a server.
type entry struct {
	name, version, status string
	latest                bool
	body                  json.RawMessage
}

//go:embed schema.json
var schemaText string

// New starts a registry with entries, each in the form of the API: {"server": ..., "_meta": ...}. It ends with the test.
func New(t testing.TB, entries ...string) *Registry {
	t.Helper()
	r := &Registry{t: t, answers: map[string]string{}}
	schema := compile(t)
	for _, text := range entries {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			t.Fatalf("an entry is not one of the API: %v\n%s", err, text)
		}
		r.entries = append(r.entries, read(t, text))
	}
	r.Server = tlstest.NewServer(t, r)
	return r
}

func compile(t testing.TB) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(schemaText))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("entry.json", value); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("entry.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func read(t testing.TB, text string) entry {
	t.Helper()
	var of struct {
		Server struct{ Name, Version string } `json:"server"`
		Meta   map[string]struct {
			Status   string `json:"status"`
			IsLatest bool   `json:"isLatest"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	official := of.Meta["io.modelcontextprotocol.registry/official"]
	return entry{of.Server.Name, of.Server.Version, official.Status, official.IsLatest, json.RawMessage(text)}
}

// Answer makes the registry answer requests of a path with a text, which need not be one of the API: a hostile registry.
func (r *Registry) Answer(path, text string) { r.answers[path] = text }

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := request.URL.EscapedPath()
	w.Header().Set("Content-Type", "application/json")
	if text, ok := r.answers[path]; ok {
		_, _ = w.Write([]byte(text))
		return
	}
	parts := strings.Split(strings.TrimPrefix(path, "/v0.1/servers"), "/")
	switch {
	case request.Method != http.MethodGet || !strings.HasPrefix(path, "/v0.1/servers"):
		r.problem(w, http.StatusNotFound, "there is no %s %s", request.Method, path)
	case path == "/v0.1/servers":
		r.list(w, request.URL.Query())
	case len(parts) == 4 && parts[2] == "versions":
		r.get(w, parts[1], parts[3], request.URL.Query())
	default: // such as a name whose slash is not encoded
		r.problem(w, http.StatusNotFound, "there is no %s", path)
	}
}

// problem answers a request that a client of the API does not make.
func (r *Registry) problem(w http.ResponseWriter, status int, format string, args ...any) {
	r.t.Errorf("registry: "+format, args...)
	notFound(w, status)
}

func notFound(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"title": "Not Found", "status": ` + strconv.Itoa(status) + `, "detail": "Server not found"}`))
}

// onlyKnown reports a parameter that the operation does not have.
func (r *Registry) onlyKnown(query url.Values, names ...string) bool {
	for name, values := range query {
		if !slices.Contains(names, name) || len(values) != 1 {
			r.t.Errorf("registry: the parameter %s is unknown, or given twice", name)
			return false
		}
	}
	return true
}

func (r *Registry) list(w http.ResponseWriter, query url.Values) {
	limit := 30
	if text := query.Get("limit"); text != "" {
		limit, _ = strconv.Atoi(text)
	}
	if !r.onlyKnown(query, "cursor", "limit", "search", "updated_since", "version", "include_deleted") || limit < 1 || limit > 100 {
		r.problem(w, http.StatusUnprocessableEntity, "limit %d", limit)
		return
	}
	page := struct {
		Servers  []json.RawMessage `json:"servers"`
		Metadata map[string]any    `json:"metadata"`
	}{[]json.RawMessage{}, map[string]any{}}
	for _, e := range r.entries {
		if !strings.Contains(e.name, query.Get("search")) || query.Get("version") == "latest" && !e.latest || e.status == "deleted" && query.Get("include_deleted") != "true" {
			continue
		}
		if len(page.Servers) == limit {
			page.Metadata["nextCursor"] = e.name + ":" + e.version
			break
		}
		page.Servers = append(page.Servers, e.body)
	}
	page.Metadata["count"] = len(page.Servers)
	_ = json.NewEncoder(w).Encode(page)
}

func (r *Registry) get(w http.ResponseWriter, name, version string, query url.Values) {
	name, _ = url.PathUnescape(name)
	version, _ = url.PathUnescape(version)
	if !r.onlyKnown(query, "include_deleted") {
		notFound(w, http.StatusUnprocessableEntity)
		return
	}
	for _, e := range r.entries {
		if e.name == name && (e.version == version || version == "latest" && e.latest) && (e.status != "deleted" || query.Get("include_deleted") == "true") {
			_, _ = w.Write(e.body)
			return
		}
	}
	notFound(w, http.StatusNotFound)
}
