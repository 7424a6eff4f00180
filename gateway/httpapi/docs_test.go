package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

var (
	heading = regexp.MustCompile("(?m)^(?:### |- )`([A-Z]+) (/[^`]*)`(?:$|: )")
	example = regexp.MustCompile("(?ms)^```json ([a-z]+)\n(.*?)^```$")
)

// TestDocumentOfRoutes: docs/how-to/use-the-api.md has every route and no other, and its examples are of the routes' types.
func TestDocumentOfRoutes(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs", "how-to", "use-the-api.md"))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	sections := heading.FindAllStringSubmatchIndex(string(page), -1)
	for i, at := range sections {
		name := string(page[at[2]:at[3]]) + " " + string(page[at[4]:at[5]])
		told = append(told, name)
		end := len(page)
		if i+1 < len(sections) {
			end = sections[i+1][0]
		}
		index := slices.IndexFunc((&api{}).routes(), func(r route) bool { return r.method+" "+r.path == name })
		if index < 0 {
			t.Errorf("docs/how-to/use-the-api.md has %s, which is no route", name)
			continue
		}
		checkExamples(t, (&api{}).routes()[index], page[at[1]:end])
	}
	for _, r := range (&api{}).routes() {
		if !slices.Contains(told, r.method+" "+r.path) {
			t.Errorf("docs/how-to/use-the-api.md does not have %s %s: %s", r.method, r.path, r.summary)
		}
	}
	for _, problem := range example.FindAllSubmatch(page[:sections[0][0]], -1) {
		fits(t, "a problem", reflect.TypeFor[Problem](), problem[2])
	}
}

// TestScopes: every route needs a scope, but for those that say little; what changes something needs more than to read.
func TestScopes(t *testing.T) {
	for _, r := range (&api{}).routes() {
		name := r.method + " " + r.path
		switch {
		case r.scope == "":
			if !slices.Contains([]string{"GET /health", "GET /readyz", "GET /openapi.json"}, name) {
				t.Errorf("%s answers whoever comes", name)
			}
		case !slices.Contains(tool.Scopes(), r.scope):
			t.Errorf("%s needs %s, which is no scope", name, r.scope)
		case r.method != http.MethodGet && r.scope == tool.ScopeRead:
			t.Errorf("%s changes something, and needs only %s", name, r.scope)
		}
	}
	for _, r := range (&api{}).routes() {
		for _, scope := range append(tool.Scopes(), "none") {
			ctx := tool.WithScopes(t.Context(), []tool.Scope{scope})
			if err := r.authorize(ctx); (err == nil) != (r.scope == "" || r.scope == scope && scope != tool.ScopeOperate) {
				t.Errorf("%s %s with scope %s: %v", r.method, r.path, scope, err)
			}
		}
	}
}

func checkExamples(t *testing.T, r route, section []byte) {
	t.Helper()
	for _, found := range example.FindAllSubmatch(section, -1) {
		switch of := string(found[1]); {
		case of == "answer":
			fits(t, r.path, r.out, found[2])
		case of == "request" && r.in != nil:
			fits(t, r.path, r.in, found[2])
		default:
			t.Errorf("%s %s has an example of its %s", r.method, r.path, of)
		}
	}
}

// fits checks that an example is one value of a type, with no name that the type does not have, and that nothing of it is lost.
func fits(t *testing.T, what string, kind reflect.Type, text []byte) {
	t.Helper()
	value := reflect.New(kind)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(value.Interface()); err != nil {
		t.Errorf("%s: %v in %s", what, err, text)
		return
	}
	again, err := json.Marshal(value.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var given, kept any
	if err := errors.Join(json.Unmarshal(text, &given), json.Unmarshal(again, &kept)); err != nil {
		t.Fatal(err)
	}
	if lost := missing(given, kept); lost != "" {
		t.Errorf("%s loses %s: %s", what, lost, again)
	}
}

// missing returns a value of an example that another value does not have at the same place, "" if there is none. An empty value is
// the same as none.
func missing(given, kept any) string {
	switch g := given.(type) {
	case map[string]any:
		k, _ := kept.(map[string]any)
		for name, member := range g {
			if lost := missing(member, k[name]); lost != "" {
				return name + " " + lost
			}
		}
		return ""
	case []any:
		k, _ := kept.([]any)
		if len(k) != len(g) {
			return fmt.Sprint(g)
		}
		for i := range g {
			if lost := missing(g[i], k[i]); lost != "" {
				return lost
			}
		}
		return ""
	}
	if given == nil || reflect.ValueOf(given).IsZero() || reflect.DeepEqual(given, kept) {
		return ""
	}
	return fmt.Sprint(given)
}

// TestDocumentedRequests checks the requests of the shell examples: their routes exist, and their bodies are of the routes' types.
func TestDocumentedRequests(t *testing.T) {
	request := regexp.MustCompile(`(?ms)^curl (.*?)https?://(?:control|[\w.]+/api)(/[^\s"]*)"?$`)
	body := regexp.MustCompile(`-d '([^']*)'`)
	tried := 0
	for _, e := range testutil.Examples(t, "docs/how-to/use-the-api.md") {
		if e.Language != "sh" {
			continue
		}
		found := request.FindStringSubmatch(e.Text)
		if found == nil {
			t.Errorf("no request: %s", e.Text)
			continue
		}
		tried++
		method, data := http.MethodGet, body.FindStringSubmatch(found[1])
		if data != nil {
			method = http.MethodPost
		}
		mux := http.NewServeMux()
		for _, r := range (&api{}).routes() {
			mux.HandleFunc(r.method+" "+r.path, func(http.ResponseWriter, *http.Request) {
				if data != nil {
					fits(t, r.path, r.in, []byte(data[1]))
				}
			})
		}
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, found[2], nil))
		if answer.Code != http.StatusOK {
			t.Errorf("%d: %s %s", answer.Code, method, found[2])
		}
	}
	if tried < 4 {
		t.Errorf("only %d requests", tried)
	}
}
