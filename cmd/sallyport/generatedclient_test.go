package main_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"sallyport/internal/testutil"
)

// TestGeneratedClient: a client that a generator makes from the OpenAPI document type-checks, with a program that uses it,
// and works against a gateway.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	modules, checkers := testutil.Clients(t), testutil.Checkers(t)
	dir := t.TempDir()
	s := newSite(t, "")
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "API="+s.base()+"/api")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base()+"/api/openapi.json?profile=clients", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: withToken{}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	document, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(dir, "openapi.json"), string(document))
	run("node", filepath.Join(modules, "@hey-api", "openapi-ts", "bin", "index.cjs"), "--input", "openapi.json", "--output", "client")
	program, err := os.ReadFile("testdata/generated/use.ts")
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(dir, "use.ts"), string(program))
	run(filepath.Join(checkers, ".bin", "tsc"), "--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable", "use.ts")

	bundle := filepath.Join(dir, "use.mjs")
	built := api.Build(api.BuildOptions{EntryPoints: []string{filepath.Join(dir, "use.ts")}, Bundle: true, Format: api.FormatESModule, Target: api.ES2022, Outfile: bundle, Write: true})
	if len(built.Errors) > 0 {
		t.Fatalf("%+v", built.Errors)
	}
	want := `health ok
tools 3 true
search everything.get_sum
call [{"type":"text","text":"Echo: hi"}] done
execute "42" true
record ok true
problem 404 404 Not Found
token 401 401
`
	if got := run("node", bundle); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	s.terminate(t)
	s.waitStopped(t)
}
