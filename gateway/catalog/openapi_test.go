package catalog_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/codegen"
	"sallyport/codegen/runtime"
	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// allOperations has the test check each operation, which takes minutes of processor time. Otherwise it checks some of each document.
var allOperations = os.Getenv("SALLYPORT_TEST_ALL_OPERATIONS") != ""

// used are the operations that the programs below use.
var used = map[string]bool{"repos_get": true, "issues_list_for_repo": true, "GetCharges": true, "readCoreV1NamespacedPod": true}

// toolsOf returns tools of a document of package openapi, as a session has them.
func toolsOf(t *testing.T, name string) []tool.Tool {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(path, testutil.Gunzip(t, filepath.Join("../upstream/openapi/testdata/apis", name+".json.gz")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := upstream.New(upstream.Settings{ID: name, OpenAPI: path, URL: "https://api.example"}, nil)
	defer s.Close()
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := s.Tools()
	if allOperations {
		return all
	}
	var some []tool.Tool
	for i, one := range all {
		if i%(len(all)/5) == 0 || used[one.ID.Name] {
			some = append(some, one)
		}
	}
	return some
}

const pythonProgram = `from servers import github, kubernetes, stripe

repo = github.repos_get(owner="o", repo="r")
name: str = repo["name"]
size: str = repo["size"]  # wrong
for issue in github.issues_list_for_repo(owner="o", repo="r", state="open"):
    number: int = issue["number"]
github.issues_list_for_repo(owner="o", repo="r", state="odd")  # wrong
charges = stripe.GetCharges(limit=3)
amount: int = charges["data"][0]["amount"]
pod = kubernetes.readCoreV1NamespacedPod(name="n", namespace="d")
phase = pod.get("status", {}).get("phase")
wrong: int = phase  # wrong
`

const typeScriptProgram = `import { github, stripe } from "./servers/index";

const repo = await github.repos_get({ owner: "o", repo: "r" });
export const name: string = repo.name;
export const size: string = repo.size; // wrong
const charges = await stripe.GetCharges({ limit: 3 });
export const amount: number | undefined = charges.data[0]?.amount;
await github.issues_list_for_repo({ owner: "o", repo: "r", state: "odd" }); // wrong
`

// The wrappers of real APIs pass pyright and tsc, as strict as they can be, and have the declared types.
func TestOpenAPITypeChecks(t *testing.T) {
	var ups []codegen.Upstream
	for _, name := range []string{"github", "stripe", "kubernetes", "digitalocean", "slack"} {
		ups = append(ups, codegen.Upstream{ID: name, Tools: toolsOf(t, name)})
	}
	typeCheck(t, ups, pythonProgram, typeScriptProgram)
}

// typeCheck compares the errors of the checkers about programs that use wrappers with the lines that are marked wrong.
func typeCheck(t *testing.T, ups []codegen.Upstream, python, typeScript string) {
	t.Helper()
	checkers, node, dir := testutil.Checkers(t), testutil.Program(t, "node"), t.TempDir()
	for _, f := range codegen.Generate(ups) {
		put(t, filepath.Join(dir, "servers", filepath.FromSlash(f.Path)), f.Data)
	}
	if err := os.CopyFS(filepath.Join(dir, "guest"), runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "guest/sallyport/__init__.pyi"), runtime.PythonTypes)
	put(t, filepath.Join(dir, "sallyport.ts"), runtime.TypeScript)
	put(t, filepath.Join(dir, "program.py"), []byte(python))
	put(t, filepath.Join(dir, "program.ts"), []byte(typeScript))
	config := map[string]any{"include": []string{"program.py", "servers"}, "extraPaths": []string{"guest"}, "typeCheckingMode": "strict", "pythonVersion": "3.13"}
	putJSON(t, filepath.Join(dir, "pyright.json"), config)
	out, _ := exec.CommandContext(t.Context(), node, filepath.Join(checkers, "pyright/index.js"), "-p", filepath.Join(dir, "pyright.json")).CombinedOutput()
	same(t, "pyright", dir, string(out), python, "program.py:%d:", " - error")

	options := map[string]any{
		"target": "es2022", "module": "es2022", "moduleResolution": "bundler", "noEmit": true, "strict": true, "types": []string{"node"}, "typeRoots": []string{filepath.Join(checkers, "@types")},
		"noUncheckedIndexedAccess": true, "exactOptionalPropertyTypes": true, "noUnusedLocals": true, "paths": map[string]any{"sallyport": []string{"./sallyport.ts"}},
	}
	putJSON(t, filepath.Join(dir, "tsconfig.json"), map[string]any{"include": []string{"program.ts", "servers/**/*.ts"}, "compilerOptions": options})
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(checkers, "typescript/bin/tsc"), "-p", ".", "--pretty", "false")
	cmd.Dir = dir
	out, _ = cmd.CombinedOutput()
	same(t, "tsc", dir, string(out), typeScript, "program.ts(%d,", "error TS")
}

// same compares the errors of a checker with the lines of a program that are marked wrong.
func same(t *testing.T, checker, dir, out, program, place, mark string) {
	t.Helper()
	want := map[string]bool{}
	for i, line := range strings.Split(program, "\n") {
		if strings.HasSuffix(line, " wrong") {
			want[fmt.Sprintf(place, i+1)] = true
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(out, dir+"/", "")) {
		if !strings.Contains(line, mark) {
			continue
		}
		expected := false
		for p := range want {
			if strings.HasPrefix(strings.TrimSpace(line), p) {
				expected = true
				delete(want, p)
			}
		}
		if !expected {
			t.Errorf("%s: %s", checker, line)
		}
	}
	for p := range want {
		t.Errorf("%s found nothing at %s; it said:\n%.3000s", checker, p, out)
	}
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func putJSON(t *testing.T, path string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, data)
}
