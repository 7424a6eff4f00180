package lint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/jsontype"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
)

// tools are those that the definitions of the tests call.
func tools(t testing.TB) []tool.Tool {
	t.Helper()
	yes := true
	reads := tool.Annotations{ReadOnly: &yes}
	path := `{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":["integer","null"],"maximum":9},"sort":{"enum":["name","size"]}},"required":["path"],"additionalProperties":false}`
	content := `{"type":"object","properties":{"content":{"type":"string"},"size":{"$ref":"#/$defs/n"}},"required":["content"],"$defs":{"n":{"type":"number"}}}`
	item := `{"type":"object","properties":{"title":{"type":"string"},"labels":{"type":"array","items":{"type":"string"}},"body":{"type":"string"}},"required":["title"]}`
	found, err := jsontype.Of([]byte(`{"items":[{"title":"a","number":1},{"title":"b","number":2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	one := func(upstream, name, input, output string, a tool.Annotations) tool.Tool {
		return tool.Tool{ID: tool.ID{Upstream: upstream, Name: name}, Wire: name, Input: json.RawMessage(input), Output: json.RawMessage(output), Annotations: a}
	}
	all := []tool.Tool{
		one("files", "list", path, content, reads),
		one("files", "read", path, content, reads),
		one("files", "write", `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`, "", tool.Annotations{}),
		one("tickets", "search", `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"labels":{"type":"array","items":{"type":"string"}}},"required":["query"]}`, "", reads),
		one("tickets", "create", `{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/$defs/item"}}},"required":["items"],"$defs":{"item":`+item+`}}`, "", tool.Annotations{}),
	}
	all[3].Observed = &tool.Observed{Shape: found, Count: 2}
	return all
}

func load(t testing.TB, name string) *spec.Definition {
	t.Helper()
	path := filepath.Join("testdata", name+".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := spec.Parse(name+".yaml", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func options(t testing.TB) lint.Options {
	t.Helper()
	return lint.Options{
		Tools: tools(t), Upstreams: []string{"files", "tickets", "remote"}, Secrets: []string{"builds"}, Environments: []string{"data_science"}, Models: []string{"large"},
		Workflows: map[string]*spec.Definition{"other": load(t, "other"), "circle": load(t, "circle")},
		Skills:    func(name string) ([]string, bool) { return []string{"slugify"}, name == "text" },
	}
}

// TestCheck holds what is said of definitions in which most is wrong, and of one in which nothing is.
func TestCheck(t *testing.T) {
	o := options(t)
	for _, name := range []string{"names", "arguments", "types", "edges", "good", "other"} {
		var out strings.Builder
		for _, f := range lint.Check(load(t, name), o) {
			out.WriteString(f.String() + "\n")
			if f.Line == 0 || f.Snippet == "" || strings.ContainsAny(f.Message, "\n\x1b") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		golden.Check(t, filepath.Join("testdata", name+".golden"), out.String())
	}
}

// Without a catalog only what the file itself says is checked.
func TestCheckAlone(t *testing.T) {
	for _, name := range []string{"good", "other"} {
		if found := lint.Check(load(t, name), lint.Options{}); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
	if found := lint.Check(load(t, "names"), lint.Options{}); len(found) < 10 {
		t.Errorf("%d", len(found))
	}
}

// FuzzCheck holds whatever schema an upstream declares, and whatever an expression says of its results, to findings with a place.
func FuzzCheck(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"type":["string","null"]}},"required":["b"]}`, `steps.x.output.a.a.b + 1`},
		{`{"allOf":[{"$ref":"#/$defs/a"},{"properties":{"c":{"items":{"type":"integer"},"type":"array"}}}],"$defs":{"a":{"$ref":"#/$defs/a"}}}`, `steps.x.output.c[0]`},
		{`{"anyOf":[{"type":"null"},{"additionalProperties":{"type":"number"}}]}`, `steps.x.output.map(k, steps.x.output[k] * 2)`},
		{`{"$ref":"#/a/0/b"}`, `steps.x`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, schema, expression string) {
		quoted, err := json.Marshal("${{" + expression + "}}")
		if err != nil {
			return
		}
		source := `{"name": "a", "steps": [{"id": "x", "tool": "u.t", "with": {"b": "a ${{ 1 }}", "c": {"a": [1, "${{ 2 }}"]}}}, {"id": "y", "tool": "u.t", "with": {"a": ` + string(quoted) + `, "d": 1}}]}`
		d, err := spec.Parse("a.json", []byte(source), nil)
		if err != nil {
			return
		}
		tools := []tool.Tool{{ID: tool.ID{Upstream: "u", Name: "t"}, Input: json.RawMessage(schema), Output: json.RawMessage(schema)}}
		for _, found := range lint.Check(d, lint.Options{Tools: tools}) {
			if found.Line == 0 || found.Message == "" || strings.ContainsAny(found.Message, "\n\x1b") {
				t.Fatalf("%s, %s: %+v", schema, expression, found)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	d, o := load(b, "good"), options(b)
	for b.Loop() {
		if found := lint.Check(d, o); len(found) > 0 {
			b.Fatal(found)
		}
	}
}
