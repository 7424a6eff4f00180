package graphql_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"sallyport/gateway/upstream/graphql"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/graphqlserver"
)

// server is the GraphQL server of the tests behind TLS.
type server struct {
	*httptest.Server
	direct string
}

func newServer(tb testing.TB) *server {
	tb.Helper()
	direct := graphqlserver.Start(tb)
	s := &server{httptest.NewTLSServer(graphqlserver.Proxy(tb, direct)), direct}
	tb.Cleanup(s.Close)
	return s
}

func (s *server) options() graphql.Options {
	return graphql.Options{
		Endpoint: s.URL + "/graphql", Transport: s.Client().Transport,
		Credentials: webapi.Credentials{Headers: map[string]string{"X-Key": graphqlserver.Key}},
	}
}

// asked is a request that the server had.
type asked struct {
	Query     string
	Variables map[string]any
}

// requests returns the requests that the server has had.
func (s *server) requests(tb testing.TB) (all []asked) {
	tb.Helper()
	resp, err := http.Get(s.direct + "/log")
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		tb.Fatal(err)
	}
	return all
}

func load(tb testing.TB, opts graphql.Options) *graphql.API {
	tb.Helper()
	api, err := graphql.Load(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	return api
}

// file writes a file into a folder of the test.
func file(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "schema")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// github returns the schema of GitHub.
func github(tb testing.TB) string {
	tb.Helper()
	return string(testutil.Gunzip(tb, "testdata/github.graphql.gz"))
}

// result is a result of tools/call.
type result struct {
	Structured json.RawMessage `json:"structuredContent"`
	Content    []struct{ Text string }
	IsError    bool
}

// call calls a tool and returns its result; an error of the arguments is the text of one.
func call(tb testing.TB, api *graphql.API, name, args string) (r result) {
	tb.Helper()
	raw, err := api.Call(tb.Context(), name, json.RawMessage(args))
	if err != nil {
		r.IsError, r.Content = true, []struct{ Text string }{{err.Error()}}
		return r
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		tb.Fatalf("%v in %s", err, raw)
	}
	return r
}
