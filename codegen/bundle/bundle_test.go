package bundle_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/codegen/bundle"
	"sallyport/codegen/runtime"
)

// tree is a servers/ tree in memory.
type tree map[string]string

func (t tree) File(path string) ([]byte, bool) {
	data, ok := t[path]
	return []byte(data), ok
}

func (t tree) List(upstream string) []string {
	if upstream == "" {
		return []string{"memory"}
	}
	if upstream == "memory" {
		return []string{"create_entities", "read_graph"}
	}
	return nil
}

var servers = tree{
	"index.ts":                  `export * as memory from "./memory/index";`,
	"memory/index.ts":           `export { create_entities } from "./create_entities"; export { read_graph } from "./read_graph";`,
	"memory/create_entities.ts": `import { call } from "sallyport"; export async function create_entities(args: { entities: string[] }): Promise<any> { return call("memory.create_entities", args); }`,
	"docs/index.ts":             `export * as resources from "./resources";`,
	"docs/resources.ts":         `import { call } from "sallyport"; export async function read(uri: string): Promise<any> { return call("docs.resources/read", { uri }); }`,
	"memory/read_graph.ts":      `import { call } from "sallyport"; export async function read_graph(args: {} = {}): Promise<any> { return call("memory.read_graph", args); }`,
}

func compile(t *testing.T, program string) string {
	t.Helper()
	code, err := bundle.Compile(program, servers, runtime.TypeScript, nil)
	if err != nil {
		t.Fatalf("compile %q: %v", program, err)
	}
	return code
}

func TestTrailingExpressionIsTheValue(t *testing.T) {
	for _, test := range []struct{ program, want string }{
		{"const x: number = 1;\nx + 1", "x + 1"},
		{"x = 5", "x = 5"},
		{"const s = `a\nb;\n`;\n({ a: s,\n b: [1,\n 2] })", "a: s"},
		{"`a\nb`", "`a\nb`"},
		{"import { read_graph } from 'servers/memory';\nawait read_graph()", "await read_graph()"},
		{"a(); b() // last\n/* and a comment */", "b()"},
		{"'just text'", `"just text"`},
		{"async () => { return 1 }", "async () =>"},
		{"new Map([[1, 2]])", "new Map"},
		{"const y = 1;\nreturn y", "y"},
		{"import { read_graph } from 'servers/memory';\nconst x = await read_graph();\nreturn { x };", "{ x }"},
	} {
		code := compile(t, test.program)
		alone := strings.LastIndex(code, "export default (")
		bundled := strings.LastIndex(code, "program_default = ")
		if bundled >= 0 && !strings.Contains(code, "program_default as default") || !strings.Contains(code[max(alone, bundled, 0):], test.want) || alone < 0 && bundled < 0 {
			t.Errorf("%q: the value is not %q:\n%s", test.program, test.want, code)
		}
	}
}

func TestWhatIsNoExpressionHasNoValue(t *testing.T) {
	for _, program := range []string{
		"const x = 1;", "function f() { return 1 }", "class A {}", "if (1) {\n 2 }", "for (const x of []) x;", "{ a: 1 }", "", "// nothing",
		"let v = 1;", "interface A { x: 1 }", "label: for(;;) { break label }", "async function g() {}", "while (false) f()", "throw new Error('x')",
	} {
		if code := compile(t, program); strings.Contains(code, "as default") || strings.Contains(code, "export default") {
			t.Errorf("%q has a value:\n%s", program, code)
		}
	}
}

func TestDefaultExportWins(t *testing.T) {
	for _, program := range []string{"export default 7;\nconsole.log(1)", "const a = 7; export { a as default };\nb()"} {
		if code := compile(t, program); !strings.Contains(code, "as default") || !strings.Contains(code, "7") {
			t.Errorf("%q lost its default export:\n%s", program, code)
		}
	}
}

func TestWrappersAreBundled(t *testing.T) {
	for _, test := range []struct {
		program string
		all     bool // a namespace brings every tool of its upstream
	}{
		{`import { create_entities } from "servers/memory"; await create_entities({ entities: [] })`, false},
		{`import { create_entities } from "servers/memory/create_entities"; await create_entities({ entities: [] })`, false},
		{`import * as memory from "servers/memory"; await memory.create_entities({ entities: [] })`, false},
		{`import { memory } from "servers"; await memory.create_entities({ entities: [] })`, true},
		{`const { create_entities } = await import("servers/memory"); await create_entities({ entities: [] })`, true},
		{`import { resources } from "servers/docs"; import { create_entities } from "servers/memory"; await resources.read("a:b"); await create_entities({ entities: [] })`, false},
		{`import { call, ToolError } from "sallyport"; try { await call("memory.create_entities", {}) } catch (e) { if (!(e instanceof ToolError)) throw e }`, false},
	} {
		code := compile(t, test.program)
		if !strings.Contains(code, `"memory.create_entities"`) || strings.Contains(code, "memory.read_graph") != test.all {
			t.Errorf("%q: wrong wrappers in the bundle:\n%s", test.program, code)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		program string
		want    bundle.Error
	}{
		{"const x = 1;\nconst y = ;", bundle.Error{Type: "SyntaxError", Message: "Unexpected \";\"", Line: 2, Source: "const y = ;"}},
		{"const x = 1;\nif (x) return x // that", bundle.Error{Type: "SyntaxError", Message: "Top-level return cannot be used inside an ECMAScript module", Line: 2, Source: "if (x) return x // that", Hint: "end with an expression: its value comes back"}},
		{"import { callTool } from 'sallyport';\ncallTool()", bundle.Error{Type: "ImportError", Message: "sallyport has no callTool", Line: 1, Source: "import { callTool } from 'sallyport';", Hint: "did you mean call?"}},
		{"import { qqq } from 'sallyport';\nqqq()", bundle.Error{Type: "ImportError", Message: "sallyport has no qqq", Line: 1, Source: "import { qqq } from 'sallyport';", Hint: "search_tools(upstream=\"sallyport\") lists what it has"}},
		{"import { pararell } from 'sallyport';\npararell()", bundle.Error{Type: "ImportError", Message: "sallyport has no pararell", Line: 1, Source: "import { pararell } from 'sallyport';", Hint: "did you mean parallel?"}},
		{"import memory from 'servers/memory';\nmemory.read_graph()", bundle.Error{Type: "ImportError", Message: "servers/memory has no default export", Line: 1, Source: "import memory from 'servers/memory';", Hint: `write: import * as memory from "servers/memory"`}},
		{"const x = await 1;\nif (x) {\n  return x\n}", bundle.Error{Type: "SyntaxError", Message: "Top-level return cannot be used inside an ECMAScript module", Line: 3, Source: "return x", Hint: "end with an expression: its value comes back"}},
		{"// one\n// two\nimport { create_entity } from 'servers/memory';\nawait create_entity()", bundle.Error{Type: "ImportError", Message: "servers/memory has no tool create_entity", Line: 3, Source: "import { create_entity } from 'servers/memory';", Hint: "did you mean create_entities?"}},
		{"\nimport { x } from 'servers/memroy';\nx()", bundle.Error{Type: "ImportError", Message: "no upstream servers/memroy", Line: 2, Source: "import { x } from 'servers/memroy';", Hint: "did you mean servers/memory?"}},
		{"import x from 'servers/memory/read_grahp';x()", bundle.Error{Type: "ImportError", Message: "servers/memory has no tool read_grahp", Line: 1, Source: "import x from 'servers/memory/read_grahp';x()", Hint: "did you mean read_graph?"}},
		{"import * as memory from 'servers/memory';\n\nawait memory.create_entity({})", bundle.Error{Type: "ImportError", Message: "servers/memory has no tool create_entity", Line: 3, Source: "await memory.create_entity({})", Hint: "did you mean create_entities?"}},
		{"import { get } from 'servers/docs/resources';\nawait get('a:b')", bundle.Error{Type: "ImportError", Message: "resources has no function get", Line: 1, Source: "import { get } from 'servers/docs/resources';", Hint: "it has read(uri), list() and templates()"}},
		{"import { prompts } from 'servers/docs';\nawait prompts.list()", bundle.Error{Type: "ImportError", Message: "servers/docs offers no prompts", Line: 1, Source: "import { prompts } from 'servers/docs';"}},
		{"import _ from 'lodash';\n_.map()", bundle.Error{Type: "ImportError", Message: `cannot import "lodash"`, Line: 1, Source: "import _ from 'lodash';", Hint: `only node's own modules, "servers/..." and "sallyport" can be imported`, Package: "lodash"}},
		{"import { read_graph } from 'memory';\nread_graph()", bundle.Error{Type: "ImportError", Message: `cannot import "memory"`, Line: 1, Source: "import { read_graph } from 'memory';", Hint: `write: from "servers/memory"`}},
	} {
		_, err := bundle.Compile(test.program, servers, runtime.TypeScript, nil)
		got, ok := errors.AsType[*bundle.Error](err)
		if !ok || *got != test.want {
			t.Errorf("%q:\n got %+v\nwant %+v", test.program, got, test.want)
		}
	}
}

// TestPackages: what the sandbox has is left to be imported there, and nothing else.
func TestPackages(t *testing.T) {
	opts := &bundle.Options{Packages: func(name string) bool { return name == "zod" || name == "@scope/a" }}
	for program, want := range map[string]string{
		"import { z } from 'zod'; z":           `from "zod"`,
		"import a from '@scope/a/b.js'; a":     `from "@scope/a/b.js"`,
		"const z = await import('zod/v4');\nz": `import("zod/v4")`,
	} {
		code, err := bundle.Compile(program, servers, runtime.TypeScript, opts)
		if err != nil || !strings.Contains(code, want) {
			t.Errorf("%q: %v\n%s", program, err, code)
		}
	}
	_, err := bundle.Compile("import b from '@scope/b/c'; b", servers, runtime.TypeScript, opts)
	if wrong, ok := errors.AsType[*bundle.Error](err); !ok || wrong.Package != "@scope/b" {
		t.Errorf("a package that is not there: %+v", err)
	}
}

// TestNothingOfTheHostIsRead tries every way that a program has to name a file of the host.
func TestNothingOfTheHostIsRead(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "canary.json")
	if err := os.WriteFile(secret, []byte(`{"canary":"c4n4ry"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel("/", secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{
		"import x from '" + secret + "'; x",
		"import x from '" + secret + "' with { type: 'json' }; x",
		"import x from 'file://" + secret + "'; x",
		"import x from './" + relative + "'; x",
		"import x from '" + relative + "'; x",
		"import x from 'servers/../../../../" + relative + "'; x",
		"export * from 'servers/memory/../../" + relative + "'",
		"const x = require('" + secret + "'); x",
		"const x = await import('" + secret + "'); x",
		"const x = new URL('" + secret + "', import.meta.url); x",
		"1\n//# sourceMappingURL=" + secret,
		"1\n//! # sourceMappingURL=" + secret,
		"/// <reference path='" + secret + "' />\n1",
	} {
		code, err := bundle.Compile(program, servers, runtime.TypeScript, nil)
		if strings.Contains(code, "c4n4ry") || err != nil && strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%q read a file of the host", program)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"1", "import { read_graph } from 'servers/memory'; await read_graph()", "`${`a`}\n`", "export default 1; 2", "a\n(b)", "\x00", "<div/>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, program string) {
		code, err := bundle.Compile(program, servers, runtime.TypeScript, nil)
		if (err == nil) == (code == "") && program != "" && err != nil {
			t.Errorf("neither code nor error for %q", program)
		}
		if _, ok := errors.AsType[*bundle.Error](err); err != nil && !ok {
			t.Errorf("an error that is none for the model: %v", err)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := bundle.Compile(`import { read_graph } from "servers/memory"; const g: any = await read_graph(); g.entities.length`, servers, runtime.TypeScript, nil); err != nil {
			b.Fatal(err)
		}
	}
}
