package openapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/gateway/upstream/openapi"
	"sallyport/internal/testutil"
)

// realAPIs are the documents of testdata/apis with the number of their operations, without those that GitHub and Stripe have on another host.
var realAPIs = map[string]int{"github": 1222, "stripe": 451, "kubernetes": 1014, "digitalocean": 290, "slack": 174}

// unpack writes a document of testdata/apis into a folder of the test.
func unpack(tb testing.TB, name string) string {
	tb.Helper()
	return file(tb, name+".json", string(testutil.Gunzip(tb, filepath.Join("testdata/apis", name+".json.gz"))))
}

// file writes files into a folder of the test, names and contents in turn, and returns the path of the first.
func file(tb testing.TB, files ...string) string {
	tb.Helper()
	dir := tb.TempDir()
	for i := 0; i+1 < len(files); i += 2 {
		path := filepath.Join(dir, filepath.FromSlash(files[i]))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return filepath.Join(dir, filepath.FromSlash(files[0]))
}

// load loads a document of the test.
func load(tb testing.TB, opts openapi.Options) *openapi.API {
	tb.Helper()
	api, err := openapi.Load(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	return api
}

// server is an API over TLS that records requests.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // "METHOD URI", then headers that a test asks for, then the body
	answer   http.HandlerFunc
	headers  []string
}

func newServer(tb testing.TB, answer http.HandlerFunc, headers ...string) *server {
	tb.Helper()
	s := &server{answer: answer, headers: headers}
	s.Server = httptest.NewTLSServer(s)
	tb.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	lines := []string{r.Method + " " + r.RequestURI}
	for _, name := range s.headers {
		if v := r.Header.Get(name); v != "" {
			lines = append(lines, name+": "+v)
		}
	}
	if len(body) > 0 {
		lines = append(lines, string(body))
	}
	s.mu.Lock()
	s.requests = append(s.requests, strings.Join(lines, "\n"))
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"ok":true}`)
}

// last returns the last request.
func (s *server) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		return ""
	}
	return s.requests[len(s.requests)-1]
}

func (s *server) options(document string) openapi.Options {
	return openapi.Options{Document: document, Server: s.URL, Transport: s.Client().Transport, Documents: s.Client().Transport}
}

// result is a result of tools/call.
type result struct {
	Content []struct {
		Type, Text, Data, MimeType string
		Resource                   struct{ URI, MimeType, Blob string }
	}
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool
}

// call calls a tool, which must have a result.
func call(tb testing.TB, api *openapi.API, name, args string) result {
	tb.Helper()
	raw, err := api.Call(tb.Context(), name, json.RawMessage(args))
	if err != nil {
		tb.Fatalf("%s(%s): %v", name, args, err)
	}
	var r result
	if err := json.Unmarshal(raw, &r); err != nil {
		tb.Fatalf("%s: %v in %.200s", name, err, raw)
	}
	return r
}

// definition is the definition of a tool.
type definition struct {
	Name, Title, Description string
	Input                    json.RawMessage `json:"inputSchema"`
	Output                   json.RawMessage `json:"outputSchema"`
	Annotations              map[string]bool
}

func definitions(tb testing.TB, api *openapi.API) map[string]definition {
	tb.Helper()
	all := map[string]definition{}
	for _, raw := range api.Definitions() {
		var d definition
		if err := json.Unmarshal(raw, &d); err != nil {
			tb.Fatalf("%v in %.200s", err, raw)
		}
		if _, twice := all[d.Name]; twice || d.Name == "" {
			tb.Errorf("two tools have the name %q", d.Name)
		}
		all[d.Name] = d
	}
	return all
}
