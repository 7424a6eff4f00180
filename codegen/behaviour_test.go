package codegen_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen"
	"sallyport/internal/tool"
)

const awkward = `{"type":"object","required":["a-b","class"],"properties":{
	"limit":{"type":"integer","default":5},"a-b":{"type":"string"},"class":{"type":"boolean"},"a_b":{"type":"number"},
	"start<":{"type":"string"},"start>":{"type":"string"},"__proto__":{"type":"string"},"名前":{"type":"string"},"2fa":{"type":"string"}}}`

// answer is what the stand-in for the guest runtime gives for a call.
type answer struct {
	Tool string
	Args map[string]any
}

func answers(t *testing.T, out string) []answer {
	t.Helper()
	var list []answer
	for line := range strings.Lines(out) {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("read %q: %v", line, err)
		}
		list = append(list, a)
	}
	return list
}

func TestPythonCallsArriveWithWireNames(t *testing.T) {
	dir := guest(t, codegen.Generate(upstreamWith(tool.Tool{ID: tool.ID{Name: "list"}, Input: json.RawMessage(awkward)})))
	program := `
import asyncio, json
import servers
from servers.up import list as call_it
show = lambda v: print(json.dumps(v))
show(call_it("x", True))
show(call_it(class_=False, a_b_2="y", a_b=1.5, start_lt="l", start_gt="g", proto="p", _2fa="2", limit=None))
show(asyncio.run(call_it.aio("x", True, limit=3)))
show(servers.up.list("x", class_=True))
for wrong in (lambda: call_it("x"), lambda: call_it("x", True, 5), lambda: call_it("x", True, limt=5), lambda: call_it.aio("x", True, limt=5)):
    try:
        wrong()
    except TypeError as e:
        show({"tool": str(e)})
try:
    from servers import upp
except ImportError as e:
    show({"tool": str(e)})
`
	if err := os.WriteFile(filepath.Join(dir, "program.py"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	got := answers(t, run(t, dir, python3, "program.py"))
	want := []answer{
		{"up.list", map[string]any{"a-b": "x", "class": true}},
		{"up.list", map[string]any{
			"a-b": "y", "class": false, "a_b": 1.5, "start<": "l", "start>": "g", "__proto__": "p", "2fa": "2", "limit": nil,
		}},
		{"up.list", map[string]any{"a-b": "x", "class": true, "limit": 3.0}},
		{"up.list", map[string]any{"a-b": "x", "class": true}},
		{Tool: "list() missing 1 required positional argument: 'class_'"},
		{Tool: "list() takes 2 positional arguments but 3 were given"},
		{Tool: "list() got an unexpected keyword argument 'limt'"},
		{Tool: "list() got an unexpected keyword argument 'limt'"},
		{Tool: "no upstream 'upp'; available: up"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestTypeScriptCallsArriveWithWireNames(t *testing.T) {
	dir := guest(t, codegen.Generate(upstreamWith(tool.Tool{ID: tool.ID{Name: "list"}, Input: json.RawMessage(awkward)})))
	got := answers(t, runTypeScript(t, dir, `import { list } from "./servers/up";
		import * as servers from "./servers";
		(async () => {
			console.log(JSON.stringify(await list({ "a-b": "x", class: true, "名前": "n", "start<": "l" })));
			console.log(JSON.stringify(await servers.up.list({ "a-b": "x", class: true })));
		})();`))
	want := []answer{
		{"up.list", map[string]any{"a-b": "x", "class": true, "名前": "n", "start<": "l"}},
		{"up.list", map[string]any{"a-b": "x", "class": true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestBadSchemasStillMakeWrappers(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 500) + "{}" + strings.Repeat("}}", 500)
	wide := `{"properties":{` + strings.Repeat(`"x":{"type":"string"},`, 3) + `"y":` + strings.Repeat(`{"anyOf":[{"type":"string"},`, 90) + "true" + strings.Repeat("]}", 90) + `}}`
	for _, schema := range []string{
		"", "null", "true", "[]", `"x"`, "12", "{", "\x00", `{"type":"string"}`, `{"type":7}`, `{"properties":[]}`, `{"properties":{"a":7}}`,
		`{"required":"a"}`, `{"required":[1,null]}`, `{"$ref":"#"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		`{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"type":"string"}]}}}`,
		`{"properties":{"a":{"$ref":"http://127.0.0.1/x"},"b":{"$ref":"file:///etc/passwd"}}}`, `{"enum":[]}`, `{"properties":{"a":{"enum":[{}, []]}}}`,
		`{"properties":{"a":{"allOf":[{"type":"string"},{"type":"number"}]}}}`, deep, wide, `{} {}`, `{"properties":{"a":{"type":["string"` + strings.Repeat(`,"null"`, 5000) + `]}}}`,
	} {
		files := codegen.Generate(upstreamWith(tool.Tool{ID: tool.ID{Name: "f"}, Input: json.RawMessage(schema), Output: json.RawMessage(schema)}))
		dir := guest(t, files)
		bundle(t, dir, `import { f } from "./servers/up"; f({});`)
		checkPython(t, files)
	}
}

func TestUnusableToolsAreLeftOut(t *testing.T) {
	id := func(up, name string) tool.Tool { return tool.Tool{ID: tool.ID{Upstream: up, Name: name}} }
	ups := []codegen.Upstream{
		{ID: "up", Tools: []tool.Tool{id("up", "good"), id("up", "a/../b"), id("up", ""), id("up", "class"), id("other", "x"), id("up", "good")}},
		{ID: "../up"}, {ID: "__init__"}, {ID: "import"}, {ID: "up"},
	}
	var got []string
	for _, f := range codegen.Generate(ups) {
		got = append(got, f.Path)
	}
	want := []string{"__aio__.py", "__init__.py", "__offer__.py", "__offer__.ts", "index.ts", "up/__init__.py", "up/good.py", "up/good.ts", "up/index.ts"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

// TestOffersAreReached asks for resources and prompts in every way that they can be written.
func TestOffersAreReached(t *testing.T) {
	up := codegen.Upstream{ID: "up", Resources: []tool.Resource{{URI: "a:b"}}, Prompts: []tool.Prompt{{Name: "p"}}}
	only := codegen.Upstream{ID: "only", Templates: []tool.Template{{URI: "a:{b}"}}, Tools: upstreamWith(tool.Tool{ID: tool.ID{Name: "x"}})[0].Tools}
	dir := guest(t, codegen.Generate([]codegen.Upstream{up, only}))
	python := `
import asyncio, json, servers
from servers.up import resources, prompts
import servers.up.resources
from servers.only import resources as templated
show = lambda v: print(json.dumps(v))
show(resources.read("a:b"))
show(servers.up.resources.list())
show(servers.up.prompts.get("p", name="n", count=3, skip=None))
show(prompts.get("p", {"a b": "x", "n": [1]}, more=True))
show(asyncio.run(prompts.list.aio()))
show(templated.templates())
`
	if err := os.WriteFile(filepath.Join(dir, "program.py"), []byte(python), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []answer{
		{"up.resources/read", map[string]any{"uri": "a:b"}},
		{"up.resources/list", map[string]any{}},
		{"up.prompts/get", map[string]any{"name": "p", "arguments": map[string]any{"name": "n", "count": "3"}}},
		{"up.prompts/get", map[string]any{"name": "p", "arguments": map[string]any{"a b": "x", "n": "[1]", "more": "true"}}},
		{"up.prompts/list", map[string]any{}},
		{"only.resources/templates/list", map[string]any{}},
	}
	if diff := cmp.Diff(want, answers(t, run(t, dir, python3, "program.py"))); diff != "" {
		t.Errorf("Python (-want +got):\n%s", diff)
	}
	got := answers(t, runTypeScript(t, dir, `import { resources, prompts } from "./servers/up";
		import * as servers from "./servers/index";
		async function main() {
			for (const a of [await resources.read("a:b"), await servers.up.resources.list(), await servers.up.prompts.get("p", { name: "n", count: 3, skip: undefined }),
				await prompts.get("p", { "a b": "x", n: [1], more: true }), await prompts.list(), await servers.only.resources.templates()]) console.log(JSON.stringify(a));
		}
		main();`))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("TypeScript (-want +got):\n%s", diff)
	}
}

func TestNothingIsGeneratedForWhatIsNotOffered(t *testing.T) {
	up := upstreamWith(tool.Tool{ID: tool.ID{Name: "x"}})[0]
	for _, f := range codegen.GenerateUpstream(up) {
		if text := string(f.Data); strings.Contains(f.Path+text, "resources") || strings.Contains(f.Path+text, "prompts") {
			t.Errorf("%s speaks of what is not there:\n%s", f.Path, text)
		}
	}
	if line := codegen.Offers(up, codegen.Python); line != "" {
		t.Errorf("Offers: %q", line)
	}
}
