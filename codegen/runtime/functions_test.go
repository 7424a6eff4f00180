package runtime_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
)

// guest writes the guest's files to a folder.
func guest(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// output runs a program and returns what it printed.
func output(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestFunctionsInPython holds the signatures that a search shows against the
// module: the same parameters, of the same kinds, with the same defaults.
func TestFunctionsInPython(t *testing.T) {
	listed, err := json.Marshal(runtime.Functions())
	if err != nil {
		t.Fatal(err)
	}
	script := `
import ast, inspect, json, sys
sys.path.insert(0, sys.argv[1])
import sallyport

def listed(text):
    args = ast.parse("def " + text + ": ...").body[0].args
    left = [None] * (len(args.args) - len(args.defaults)) + args.defaults
    every = [(a, d, "") for a, d in zip(args.args, left)] + ([(args.vararg, None, "*")] if args.vararg else [])
    every += [(a, d, "kw ") for a, d in zip(args.kwonlyargs, args.kw_defaults)] + ([(args.kwarg, None, "**")] if args.kwarg else [])
    return [kind + a.arg + (" = " + repr(ast.literal_eval(d)) if d else "") for a, d, kind in every]

KINDS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**", "KEYWORD_ONLY": "kw ", "POSITIONAL_OR_KEYWORD": ""}

def real(function):
    every = inspect.signature(function).parameters.values()
    return [KINDS[p.kind.name] + p.name + ("" if p.default is p.empty else f" = {p.default!r}") for p in every]

functions = json.load(sys.stdin)
for f in functions:
    text, function = f["Python"]["Signature"], getattr(sallyport, f["Name"])
    assert text.startswith(f["Name"] + "("), text
    assert listed(text) == real(function), (listed(text), real(function))
    assert f["Summary"] and f["Python"]["Doc"] and function.__doc__, f["Name"]
    exec(f["Python"]["Import"])
assert {f["Name"] for f in functions} == set(sallyport.__all__) - {"call", "async_call", "Blob"}
`
	output(t, string(listed), "/usr/bin/python3", "-I", "-B", "-c", script, guest(t))
}

// TestFunctionsInTypeScript lets the compiler do the same: what is listed must be
// how the module's function can be called, and the module must have no others.
func TestFunctionsInTypeScript(t *testing.T) {
	var program strings.Builder
	known := map[string]bool{"call": true}
	program.WriteString("import * as sallyport from \"sallyport\";\nimport { type Progress } from \"sallyport\";\n")
	for _, f := range runtime.Functions() {
		known[f.Name] = true
		program.WriteString(f.TypeScript.Import + ";\nvoid " + f.Name + ";\n")
		signature, ok := strings.CutPrefix(f.TypeScript.Signature, f.Name)
		if !ok {
			t.Errorf("%s: %s", f.Name, f.TypeScript.Signature)
		}
		program.WriteString(listedType(f.Name, signature) + "\n")
	}
	for line := range strings.Lines(string(runtime.TypeScript)) {
		if name := exportedFunction(line); name != "" && !known[name] {
			t.Errorf("%s is exported and not listed", name)
		}
	}
	if out, err := checkTypes(t, program.String()); err != nil {
		t.Errorf("%v: %s\n%s", err, out, program.String())
	}
	if out, err := checkTypes(t, program.String()+"const wrong: (query: number) => Promise<string> = sallyport.search_tools;\nvoid wrong;\n"); err == nil || !strings.Contains(out, "TS2322") {
		t.Errorf("the compiler misses what is wrong: %v %s", err, out)
	}
}

// listedType makes a statement of a listed signature that compiles if the module's fits it.
func listedType(name, signature string) string {
	switch name {
	case "ToolError":
		return "const toolError: new " + signature + " => ToolError = sallyport.ToolError; void toolError;"
	case "parallel": // its list of functions and its options cannot be written as one type
		return "const all: Promise<any[]>[] = [sallyport.parallel(() => 1, () => 2, { limit: 4 }), sallyport.parallel([() => 1], { limit: 1, errors: true })]; void all;"
	case "progress":
		signature = "<T>" + signature
	}
	at := strings.LastIndex(signature, "): ")
	return "const of_" + name + ": " + signature[:at+1] + " => " + signature[at+3:] + " = sallyport." + name + "; void of_" + name + ";"
}

// exportedFunction returns the function that a line of sallyport.ts exports.
func exportedFunction(line string) string {
	line = strings.TrimPrefix(strings.TrimPrefix(line, "export "), "async ")
	name, ok := strings.CutPrefix(line, "function ")
	if !ok {
		return ""
	}
	return name[:strings.IndexAny(name, "(<")]
}

func checkTypes(t *testing.T, program string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	config := `{"compilerOptions":{"strict":true,"noEmit":true,"target":"es2022","module":"esnext","moduleResolution":"bundler","types":[],"lib":["es2022"],"paths":{"sallyport":["./sallyport.ts"]}},"files":["program.ts"]}`
	for name, data := range map[string]string{"tsconfig.json": config, "program.ts": program, "sallyport.ts": string(runtime.TypeScript)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(testutil.Checkers(t), ".bin/tsc"), "-p", dir).CombinedOutput()
	return string(out), err
}

// TestShapesOfValues runs the cases of internal/jsontype in both languages.
func TestShapesOfValues(t *testing.T) {
	data, err := os.ReadFile("../../internal/jsontype/testdata/shapes.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Python, TypeScript string }
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 20 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	dir := guest(t)
	var python, node, wantPython, wantNode []string
	for _, c := range cases {
		wantPython, wantNode = append(wantPython, c.Python), append(wantNode, c.TypeScript)
	}
	script := "import json, sys\nsys.path.insert(0, sys.argv[1])\nfrom sallyport import shape_of\nprint(json.dumps([shape_of(case['value']) for case in json.load(sys.stdin)]))"
	if err := json.Unmarshal([]byte(output(t, string(data), "/usr/bin/python3", "-I", "-B", "-c", script, dir)), &python); err != nil {
		t.Fatal(err)
	}
	script = `import { shape_of } from "` + dir + `/api.mjs"; import fs from "node:fs";
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map((one) => shape_of(one.value))));`
	if err := json.Unmarshal([]byte(output(t, string(data), testutil.Program(t, "node"), "--input-type=module", "-e", script)), &node); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantPython, python); diff != "" {
		t.Errorf("python (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantNode, node); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
}

// TestStartLoadsLittle holds the guests to what every program has to wait for.
func TestStartLoadsLittle(t *testing.T) {
	dir := guest(t)
	script := "import sys\nsys.path.insert(0, sys.argv[1])\nimport sallyport\nprint(*sorted(m for m in sys.modules if m.startswith('sallyport')), *({'asyncio', 'base64', 'concurrent', 'difflib', 'inspect', 'logging', 'typing', 'dataclasses', 'tempfile'} & set(sys.modules)))"
	if got := output(t, "", "/usr/bin/python3", "-I", "-S", "-B", "-c", script, dir); got != "sallyport\n" {
		t.Errorf("python loads %s", got)
	}
	script = `import { createRequire } from "node:module"; await import("` + dir + `/api.mjs"); console.log(Object.keys(createRequire("/").cache).length);`
	if got := output(t, "", testutil.Program(t, "node"), "--input-type=module", "-e", script); got != "0\n" {
		t.Errorf("node loads %s more modules", got)
	}
}
