package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/sandbox"
)

// oddNames are what an upstream can call its tools to be trouble for a language,
// a file system, or a reader.
var oddNames = []string{
	"class", "class_", "import", "None", "match", "type", "_", "async", "await", "let", "eval", "print", "list", "str", "Any", "Promise", "self",
	"__init__", "__proto__", "__getattr__", "__aio__", "constructor", "then", "toString", "index", "servers", "call", "resources", "prompts", "sallyport",
	"../x", "..", "a/b", "a.b", "a-b", "日本語", "中文", "é", "e\u0301", "g\u0435t", "get", "Get", "3d", "con", strings.Repeat("x", 200), strings.Repeat("x", 199) + "y", "\u202etxt",
}

// TestOddNamesEndToEnd imports and calls every tool of an upstream with odd names, in a real sandbox, in both languages.
func TestOddNamesEndToEnd(t *testing.T) {
	odd := newSite(t, func(s *site) {
		for _, name := range oddNames {
			s.tool(name, "Says "+name, "", func(json.RawMessage) *mcp.CallToolResult { return text("I am " + name) })
		}
	})
	g := open(t, withRunsc(t, settings(map[string]*site{"odd": odd})), nil)
	g.Catalog.WaitConnected(t.Context())
	python, typescript, want := oddPrograms(t, g)
	for language, code := range map[string]string{"python": python, "typescript": typescript} {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Language: language})
		if err != nil || e.Status != sandbox.OK {
			t.Fatalf("%s: %v, %s, %+v, %s", language, err, e.Status, e.Fault, e.Stderr.Text)
		}
		if diff := cmp.Diff(want, e.Stdout.Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", language, diff)
		}
	}
}

// oddPrograms call every tool and print what it says, both by its own import and by way of the package.
func oddPrograms(t *testing.T, g *gateway.Gateway) (python, typescript, want string) {
	t.Helper()
	tools := g.Catalog.Tools()
	if len(tools) != len(oddNames) {
		t.Fatalf("%d tools of %d names", len(tools), len(oddNames))
	}
	var py, ts, lines strings.Builder
	py.WriteString("import servers\n")
	ts.WriteString("import * as servers from \"servers\";\n")
	for i, tl := range tools {
		fmt.Fprintf(&py, "from servers.odd import %s as f%d\nprint(f%d())\nprint(servers.odd.%s())\n", tl.ID.Name, i, i, tl.ID.Name)
		fmt.Fprintf(&ts, "import { %s as f%d } from \"servers/odd\";\nconsole.log(await f%d());\nconsole.log(await servers.odd.%s());\n", tl.ID.Name, i, i, tl.ID.Name)
		fmt.Fprintf(&lines, "I am %s\nI am %s\n", tl.Wire, tl.Wire)
	}
	return py.String(), ts.String(), lines.String()
}
