package bundle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen/bundle"
	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
)

// driver runs modules one after the other in one process and prints what each came to.
const driver = `
import { pathToFileURL } from "node:url";
globalThis[Symbol.for("sallyport")] = { call: async (tool) => ({ tool }) };
for (const path of process.argv.slice(1)) {
  let out;
  try {
    const value = (await import(pathToFileURL(path))).default;
    out = JSON.stringify(value) ?? "";
  } catch (error) {
    const at = /program\.ts:(\d+)/.exec(error.stack);
    out = error.name + ": " + error.message + (at ? " @" + at[1] : "");
  }
  console.log(JSON.stringify(out));
}`

// session compiles programs as those of one session and returns what each of them came to.
func session(t *testing.T, programs []string) []string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"--enable-source-maps", "--input-type=module", "-e", driver, "--"}
	for i, program := range programs {
		code, err := bundle.Compile(program, servers, runtime.TypeScript, &bundle.Options{Session: true})
		if err != nil {
			t.Fatalf("compile %q: %v", program, err)
		}
		path := filepath.Join(dir, fmt.Sprintf("p%d.mjs", i))
		if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	cmd := exec.CommandContext(t.Context(), testutil.Program(t, "node"), args...)
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var outs []string
	for line := range strings.Lines(string(printed)) {
		var out string
		if err := json.Unmarshal([]byte(line), &out); err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	return outs
}

// TestSession: what a program declares at its top level is there for the programs after it.
func TestSession(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string][][2]string{ // program, what it comes to
		"every way to declare": {
			{"const a: number = 1; let b = 2; var c = 3; function f() { return a + b } class K { x = 5 } enum E { Y = 7 } namespace N { export const z = 9 }", ""},
			{"[a, b, c, f(), new K().x, E.Y, N.z]", "[1,2,3,3,5,7,9]"},
		},
		"destructuring": {
			{"const [p, { q, r: [s = 4], ...t }, ...u] = [1, { q: 2, r: [], v: 5 }, 6, 7]", ""},
			{"[p, q, s, t, u]", `[1,2,4,{"v":5},[6,7]]`},
			{"typeof r", `"undefined"`},
		},
		"one variable": {
			{"let count = 0; const list = []; function bump() { count++; list.push(count); return count }", ""},
			{"bump(); bump()", "2"},
			{"count = 40; bump()", "41"},
			{"[count, list]", "[41,[1,2,41]]"},
		},
		"declared anew": {
			{"const x = 1; function g() { return x }", ""},
			{"const x = 'two'; x", `"two"`},
			{"class x { static y = 3 }\n[x.y, g()]", "[3,1]"},
			{"let x, y = 5;\ny", "5"},
		},
		"imports": {
			{"import { createHash } from 'node:crypto';\nimport * as path from 'path';\nimport os from 'os';\nimport { read_graph, create_entities as make } from 'servers/memory';", ""},
			{"[createHash('md5').update('').digest('hex'), path.basename('/a/b'), typeof os.EOL]", `["d41d8cd98f00b204e9800998ecf8427e","b","string"]`},
			{"[await read_graph({}), await make({ entities: [] })]", `[{"tool":"memory.read_graph"},{"tool":"memory.create_entities"}]`},
		},
		"types are no values": {
			{"import type { Graph } from 'servers/memory'; interface A { x: number } type B = A; declare const z: number; const w: A = { x: 1 }", ""},
			{"w.x", "1"},
		},
		"await": {
			{"const v = await Promise.resolve(8)\nfor await (const n of [1]) { var seen = n }", ""},
			{"[v, seen]", "[8,1]"},
		},
		"a fault keeps what was before it": {
			{"const old = 'old'; let kept = 1", ""},
			{"const fresh = 1; kept = 2;\n\nnull.x;\nconst old = 'new', late = 1", "TypeError: Cannot read properties of null (reading 'x') @3"},
			{"[fresh, kept, old]", `[1,2,"old"]`},
			{"\nlate", "ReferenceError: late is not defined @2"},
			{"let late = 'made'; late", `"made"`},
		},
		"a fault after imports keeps what was before it": {
			{"import fs from 'fs';\nconst one = 1, two = 2;\nnull.x", "TypeError: Cannot read properties of null (reading 'x') @3"},
			{"[one, two, typeof fs.readFileSync]", `[1,2,"function"]`},
		},
		"constants": {
			{"const k = 1; import { sep } from 'path'", ""},
			{"\nk = 2", "TypeError: Assignment to constant variable. @2"},
			{"k", "1"},
		},
		"names in texts": {
			{"const text = `\nconst fake = 1;\nlet other = 2;\n`; // let comment = 1\nconst re = /const q = 1/; { let inner = 1; }", ""},
			{"[typeof fake, typeof other, typeof comment, typeof inner, text.length]", `["undefined","undefined","undefined","undefined",32]`},
		},
		"unusual names": {
			{"const größe = 1, $ = 2, _ = 3, 日本 = 4, async = 5, of = 6, get = 7, type = 8, name = 9, old = 10, known = 11, names = 12, set = 13", ""},
			{"[größe, $, _, 日本, async, of, get, type, name, old, known, names, set]", "[1,2,3,4,5,6,7,8,9,10,11,12,13]"},
		},
		"what the interpreter needs": {
			{"const process = 1, Object = 2, JSON = 3, console = 4; [process, Object, JSON, console]", "[1,2,3,4]"},
			{"[typeof process, typeof Object, typeof JSON, typeof console]", `["object","function","object","object"]`},
		},
		"exports": {
			{"export const shared = 1; export default function main() { return 1 }\nexport { shared as other }", ""},
			{"[shared, main()]", "[1,1]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var programs, want []string
			for _, row := range rows {
				programs, want = append(programs, row[0]), append(want, row[1])
			}
			if diff := cmp.Diff(want, session(t, programs)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestSessionMistakes: a program of a session is told what is wrong with it as any other is.
func TestSessionMistakes(t *testing.T) {
	t.Parallel()
	for _, program := range []string{
		"const x = ;", "const x = 1;\nconst x = 2;", "import { create_entity } from 'servers/memory';\ncreate_entity()", "import x from 'lodash';\nx()", "let a = 1;\nif (a) return a",
	} {
		_, want := bundle.Compile(program, servers, runtime.TypeScript, nil)
		_, got := bundle.Compile(program, servers, runtime.TypeScript, &bundle.Options{Session: true})
		if want == nil || got == nil || want.Error() != got.Error() {
			t.Errorf("%q: %v, want %v", program, got, want)
		}
	}
}

// TestSessionTypeImport: the import of a type that does not say that it is one stops nothing.
func TestSessionTypeImport(t *testing.T) {
	t.Parallel()
	outs := session(t, []string{"import { Graph, read_graph } from 'servers/memory';\nconst g: Graph = await read_graph({});", "g"})
	if diff := cmp.Diff([]string{"", `{"tool":"memory.read_graph"}`}, outs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
