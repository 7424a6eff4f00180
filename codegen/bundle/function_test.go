package bundle_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/codegen/bundle"
)

func raw(pairs ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return m
}

const typescriptProgram = `import { read_graph } from "servers/memory";
import * as fs from 'node:fs';
// the repo is "octo/hello"
const repo = "octo/hello";
type Row = { repo: string; n: number };
const text = ` + "`" + `
many
  lines of ${repo} and octo/hello
` + "`" + `;
async function rows(n: number): Promise<Row[]> {
  const found = /octo\/hello"/.test('octo/hello'); // 7
  return [{ repo: "octo/hello", n: 7 / n }];
}
const all = await rows(7);
for (const row of all) console.log(row.repo, 7);
({
  all,
  n: 7,
});
`

func TestFunctionOfAProgram(t *testing.T) {
	made, err := bundle.Function(typescriptProgram, "weekly", raw("repo", `"octo/hello"`, "limit", "7"), "Makes it.")
	if err != nil {
		t.Fatal(err)
	}
	want := `import { read_graph } from "servers/memory";
import * as fs from 'node:fs';

/** Makes it. */
export async function weekly({ limit = 7, repo = "octo/hello" }: { limit?: number; repo?: string } = {}) {
  // the repo is "octo/hello"
  type Row = { repo: string; n: number };
  const text = ` + "`" + `
many
  lines of ${repo} and octo/hello
` + "`" + `;
  async function rows(n: number): Promise<Row[]> {
    const found = /octo\/hello"/.test(repo); // 7
    return [{ repo: repo, n: limit / n }];
  }
  const all = await rows(limit);
  for (const row of all) console.log(row.repo, limit);
  return ({
    all,
    n: limit,
  });
}
`
	if made.Code != want {
		t.Errorf("got\n%s\nwant\n%s", made.Code, want)
	}
	if made.Counts["repo"] != 3 || made.Counts["limit"] != 4 {
		t.Errorf("counts %v", made.Counts)
	}
}

func TestFunctionRefuses(t *testing.T) {
	for _, test := range []struct {
		program, name string
		params        map[string]json.RawMessage
		want          string
	}{
		{"const x = 5;\nx", "f", raw("y", "6"), "the program has no literal 6, the value of y"},
		{"function g(n) { return n }\ng(5)", "f", raw("n", "5"), "the program uses n for something else"},
		{"export default 5", "f", nil, "the program has exports"},
		{"const f = 1; f", "f", nil, "already uses the name f"},
		{"const = 1", "f", nil, "invalid program"},
		{"g(1)", "f", raw("class", "1"), `"class" is not a valid parameter name`},
		{"g([1])", "f", raw("a", "[1]"), "must be a string, number or boolean"},
	} {
		if made, err := bundle.Function(test.program, test.name, test.params, "x"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q\n%s", test.program, err, test.want, made.Code)
		}
	}
}

func TestFunctionReturnsTheLastExpression(t *testing.T) {
	for program, want := range map[string]string{
		"const a = 1\n(2)":                 "const a = 1\n  (2)", // one statement
		"const a = f()\na.b":               "return (a.b)",
		"if (x) { y }":                     "if (x) { y }",
		"let s = `a${`b`}c`;\ns + `${s}`":  "return (s + `${s}`)",
		"a(); b() // last":                 "a(); return (b()) // last",
		"x = 4 / 2 / 1; /[/]\"'`/.test(y)": "return (/[/]\"'`/.test(y))",
		"class A {}":                       "class A {}",
	} {
		made, err := bundle.Function(program, "f0", nil, "x")
		if err != nil || !strings.Contains(made.Code, want) || strings.Contains(want, "return") != strings.Contains(made.Code, "return (") {
			t.Errorf("%q: %v\n%s", program, err, made.Code)
		}
	}
}

func FuzzFunction(f *testing.F) {
	f.Add(typescriptProgram, `"octo/hello"`)
	f.Add("a/b/c`${'x'}`", `"x"`)
	f.Add("/*", "1")
	f.Add("'\\", "1e9")
	f.Fuzz(func(t *testing.T, program, value string) {
		if len(program) > 2000 {
			return
		}
		_, _ = bundle.Function(program, "f0", raw("p", value), "d")
		_, _ = bundle.Exports(program)
	})
}

func TestExports(t *testing.T) {
	functions, doc := bundle.Exports(`/* What it is. */
import { x } from "servers/memory";
/**
 * Adds two.
 * Twice.
 */
export async function add(a: number, { b = 1, c }: { b?: number; c: string } = { c: "," }): Promise<{ sum: number }> { return { sum: a } }
export const twice = async (n: Array<[number, string]>): Promise<void> => { };
function hidden() {}
export function odd<T>(x: T) { return x }
export class Thing {}
// export function no() {}
`)
	got, _ := json.Marshal(functions)
	want := `[{"Name":"add","Signature":"add(a: number, { b = 1, c }: { b?: number; c: string } = { c: \",\" }): Promise\u003c{ sum: number }\u003e","Parameters":["a: number","{ b = 1, c }: { b?: number; c: string } = { c: \",\" }"],"Doc":"Adds two.\nTwice."},` +
		`{"Name":"twice","Signature":"twice(n: Array\u003c[number, string]\u003e): Promise\u003cvoid\u003e","Parameters":["n: Array\u003c[number, string]\u003e"],"Doc":""},` +
		`{"Name":"odd","Signature":"odd(x: T)","Parameters":["x: T"],"Doc":""},{"Name":"Thing","Signature":"Thing(...)","Parameters":null,"Doc":""}]`
	if string(got) != want || doc != "What it is." {
		t.Errorf("%q\n%s\nwant\n%s", doc, got, want)
	}
}
