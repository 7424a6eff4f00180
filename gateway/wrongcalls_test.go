package gateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen"
	"sallyport/codegen/schematest"
	"sallyport/gateway/execution"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

const pyWrong = `import inspect
from servers import up
def call(name, wire, args):
    function = getattr(up, name)
    names = dict(zip(wire, inspect.signature(function).parameters))
    try:
        if isinstance(args, list):
            function(*args)
        else:
            function(**{names.get(name, name): value for name, value in args.items()})
        print("sent")
    except Exception as err:
        print(f"{type(err).__name__}: {err}", getattr(err, "hint", ""), sep="\t")
`

const tsWrong = `import * as up from "servers/up";
async function call(f: any, args: any) {
  try {
    await (Array.isArray(args) ? f(...args) : f(args));
    console.log("sent");
  } catch (e: any) {
    console.log(e.name + ": " + e.message + "\t" + (e.hint ?? ""));
  }
}
`

// TestWrongCallsTeach makes wrong calls of real tools in both languages. The
// golden file has what a model reads of each; nothing of a wrong call leaves the sandbox.
func TestWrongCallsTeach(t *testing.T) {
	data, err := os.ReadFile("testdata/wrongcalls.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Tools map[string]json.RawMessage
		Calls []struct {
			Tool string
			Args json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	var tools []tool.Tool
	inputs := map[string]tool.Tool{}
	for _, name := range schematest.Keys(table.Tools) {
		inputs[name] = tool.Tool{ID: tool.ID{Upstream: "up", Name: name}, Wire: name, Input: table.Tools[name]}
		tools = append(tools, inputs[name])
	}
	py, ts := pyWrong, tsWrong
	for _, c := range table.Calls {
		args := decode(c.Args)
		py += fmt.Sprintf("call(%q, %s, %s)\n", c.Tool, schematest.Python(wireNames(inputs[c.Tool])), schematest.Python(args))
		ts += fmt.Sprintf("await call(up.%s, %s);\n", c.Tool, schematest.TypeScript(args))
	}
	g, m := reflect(t, tools)
	said := map[codegen.Language][]string{}
	for lang, code := range map[codegen.Language]string{codegen.Python: py, codegen.TypeScript: ts} {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Language: string(lang)})
		if err != nil || e.Status != sandbox.OK {
			t.Fatalf("%s: %v %s %+v", lang, err, e.Status, e.Fault)
		}
		said[lang] = strings.Split(strings.TrimSpace(e.Stdout.Text), "\n")
		sent := strings.Count(e.Stdout.Text, "sent\n")
		if len(said[lang]) != len(table.Calls) || e.Calls != sent || len(m.take()) != sent {
			t.Fatalf("%s: %d answers for %d calls, %d calls left the sandbox, %d were meant to:\n%s", lang, len(said[lang]), len(table.Calls), e.Calls, sent, e.Stdout.Text)
		}
	}
	var b strings.Builder
	for i, c := range table.Calls {
		fmt.Fprintf(&b, "%s %s\n", c.Tool, c.Args)
		for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
			message, hint, _ := strings.Cut(said[lang][i], "\t")
			fmt.Fprintf(&b, "  %-10s  %s\n", lang, message)
			if hint != "" && (i == 0 || table.Calls[i-1].Tool != c.Tool || strings.HasPrefix(hint, "write")) {
				fmt.Fprintf(&b, "  %-10s  %s\n", "hint", hint)
			}
			if len(message) > 1000 || len(hint) > 600 {
				t.Errorf("%s: %d and %d bytes: %s", c.Tool, len(message), len(hint), message)
			}
		}
	}
	const path = "testdata/wrongcalls.golden"
	if golden.Update() {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if diff := cmp.Diff(string(want), b.String()); err != nil || diff != "" {
		t.Errorf("%v: run go test ./gateway -run WrongCalls -update if this is right (-golden +got):\n%s", err, diff)
	}
}
