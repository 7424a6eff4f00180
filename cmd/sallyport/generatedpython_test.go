package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/testutil"
)

// TestGeneratedPython: the functions that a gateway makes from the OpenAPI document of another one are a typed client of its API: a
// program that uses them passes the type checker and works.
func TestGeneratedPython(t *testing.T) {
	t.Parallel()
	checkers := testutil.Checkers(t)
	api := newSite(t, "")
	client := newAPISite(t, "a-token-for-a-test")
	program, err := os.ReadFile("testdata/generated/use.py")
	if err != nil {
		t.Fatal(err)
	}
	const header = "Authorization=Bearer ${SHOP_KEY}"
	client.run(t, "added api", "upstreams", "add", "api", "--openapi", api.base()+"/openapi.json?profile=clients", "--url", api.base()+"/api", "--header", header)
	want := `health ok
tools 3 True
search everything.get_sum
call done {'type': 'text', 'text': 'Echo: hi'}
execute 42
record ok True
problem True
`
	client.exec(t, want, "use.py", string(program))
	client.run(t, "", "generate", "--out", "made", "--lang", "python")
	writeText(t, filepath.Join(client.dir, "pyright.json"), `{"include": ["use.py", "made/servers"], "extraPaths": ["made"], "typeCheckingMode": "strict", "pythonVersion": "3.13"}`)
	check := exec.CommandContext(t.Context(), testutil.Program(t, "node"), filepath.Join(checkers, "pyright", "index.js"), "-p", filepath.Join(client.dir, "pyright.json"))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	api.terminate(t)
	api.waitStopped(t)
}
