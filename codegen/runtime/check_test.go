package runtime_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/codegen"
	"sallyport/codegen/runtime"
	"sallyport/codegen/schematest"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// ask is one call that the guest is to check, verdict what came of it.
type ask struct {
	Spec string `json:"spec"`
	Args any    `json:"args"`
}

type verdict struct {
	Wrong string `json:"wrong"`
	Args  any    `json:"args"` // what would be sent
}

const pyDriver = `
import sys, json
sys.path.insert(0, sys.argv[1])
from sallyport.check import refuse
for row in sys.stdin.buffer:
    ask = json.loads(row)
    wrong, _ = refuse(ask["args"], ask["spec"])
    print(json.dumps({"wrong": wrong, "args": ask["args"]}))
`

const tsDriver = `
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
const { refuse } = await import(pathToFileURL(process.argv[1] + "/check.mjs"));
for await (const row of createInterface({ input: process.stdin })) {
  const { spec, args } = JSON.parse(row);
  const { wrong = "" } = refuse(args, spec);
  console.log(JSON.stringify({ wrong, args }));
}`

// judge lets the guest of a language check calls.
func judge(t testing.TB, lang codegen.Language, asks []ask) []verdict {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	args := []string{testutil.Program(t, "python3"), "-I", "-c", pyDriver, dir}
	if lang == codegen.TypeScript {
		args = []string{testutil.Program(t, "node"), "--input-type=module", "-e", tsDriver, dir}
	}
	var in bytes.Buffer
	for _, a := range asks {
		row, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(row, '\n'))
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", lang, err)
	}
	var list []verdict
	for rows := bufio.NewReader(bytes.NewReader(out)); ; {
		row, err := rows.ReadBytes('\n')
		if err != nil {
			break
		}
		var v verdict
		dec := json.NewDecoder(bytes.NewReader(row))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if len(list) != len(asks) {
		t.Fatalf("%s: %d verdicts for %d calls", lang, len(list), len(asks))
	}
	return list
}

// compileSchema returns the checker of a schema, nil if it cannot be compiled.
func compileSchema(input any) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	if c.AddResource("test:///schema", input) != nil {
		return nil
	}
	s, err := c.Compile("test:///schema")
	if err != nil {
		return nil
	}
	return s
}

func decode(t testing.TB, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// schemas are random ones, and those of the catalogue where it is beside the project.
func schemas(t testing.TB) []tool.Tool {
	t.Helper()
	var tools []tool.Tool
	for seed := range uint64(400) {
		input, err := json.Marshal(schematest.New(seed).Tool())
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool.Tool{ID: tool.ID{Upstream: "random", Name: fmt.Sprint("t", seed)}, Input: input})
	}
	paths, _ := filepath.Glob("../../../shared/catalog/*.json")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		up := strings.TrimSuffix(filepath.Base(path), ".json")
		for _, l := range list.Tools {
			tools = append(tools, tool.Tool{ID: tool.ID{Upstream: tool.Identifier(up), Name: tool.Identifier(l.Name)}, Input: l.InputSchema})
		}
	}
	return tools
}

// TestCheckRefusesNothingThatFits checks random values that fit their schema,
// as the checker of the gateway sees it, and values that do not: both languages
// say the same of them.
func TestCheckRefusesNothingThatFits(t *testing.T) {
	testutil.Long(t)
	var asks, asksTS []ask
	var from []tool.Tool
	var fit []bool
	for i, tl := range schemas(t) {
		input, check := decode(t, tl.Input), compileSchema(decode(t, tl.Input))
		if check == nil {
			continue
		}
		py, ts, g := codegen.Spec(tl, codegen.Python), codegen.Spec(tl, codegen.TypeScript), schematest.New(uint64(i))
		for range 6 {
			value := g.Value(input)
			if _, ok := value.(map[string]any); !ok {
				continue
			}
			for _, v := range []any{value, g.Corrupt(value)} {
				asks, asksTS = append(asks, ask{py, v}), append(asksTS, ask{ts, v})
				from, fit = append(from, tl), append(fit, check.Validate(v) == nil)
			}
		}
	}
	py, ts := judge(t, codegen.Python, asks), judge(t, codegen.TypeScript, asksTS)
	count := map[string]int{}
	for i := range asks {
		refused := py[i].Wrong != ""
		if fit[i] && strings.Contains(py[i].Wrong, "unknown parameter") { // no wrapper has it: Python refuses it by itself
			fit[i] = false
		}
		count[fmt.Sprintf("fits %t, refused %t", fit[i], refused)]++
		switch {
		case fit[i] && refused:
			row, _ := json.Marshal(asks[i].Args)
			t.Errorf("%s: refused what fits: %s\n%s\n%.1500s", from[i].ID, py[i].Wrong, row, asks[i].Spec)
		case refused != (ts[i].Wrong != ""):
			row, _ := json.Marshal(asks[i].Args)
			t.Errorf("%s: Python says %q, TypeScript %q\n%s\n%.1500s", from[i].ID, py[i].Wrong, ts[i].Wrong, row, asks[i].Spec)
		case fit[i] && !schematest.Equal(py[i].Args, asks[i].Args):
			t.Errorf("%s: sends %v for %v", from[i].ID, py[i].Args, asks[i].Args)
		case len(py[i].Wrong) > 1000 || len(ts[i].Wrong) > 1000:
			t.Errorf("%s: %d bytes: %s", from[i].ID, len(py[i].Wrong), py[i].Wrong)
		}
		if t.Failed() {
			break // one at a time is enough to read
		}
	}
	t.Log(count)
}
