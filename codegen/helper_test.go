package codegen_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"sallyport/codegen"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// write puts files into the servers folder of dir.
func write(t testing.TB, dir string, files []codegen.File) {
	t.Helper()
	made := map[string]bool{}
	for _, f := range files {
		path := filepath.Join(dir, "servers", filepath.FromSlash(f.Path))
		if parent := filepath.Dir(path); !made[parent] {
			made[parent] = true
			if err := os.MkdirAll(parent, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// guest makes a folder with the files and the stand-in for the guest runtime.
func guest(t testing.TB, files []codegen.File) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	for _, name := range []string{"sallyport.py", "sallyport.ts", "audit.py"} {
		data, err := os.ReadFile(filepath.Join("testdata/guest", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs an interpreter in dir and returns what it printed.
func run(t testing.TB, dir, interpreter string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testutil.Program(t, interpreter), args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%.4000s", interpreter, strings.Join(args, " "), err, out)
	}
	return string(out)
}

const python3 = "/usr/bin/python3"

// bundle compiles a TypeScript program that stands in dir beside servers/.
func bundle(t testing.TB, dir, program string) []byte {
	t.Helper()
	result := api.Build(api.BuildOptions{
		Stdin:         &api.StdinOptions{Contents: program, ResolveDir: dir, Loader: api.LoaderTS},
		AbsWorkingDir: dir, Bundle: true, Format: api.FormatCommonJS, Platform: api.PlatformNode, LogLevel: api.LogLevelSilent,
		Alias: map[string]string{"sallyport": filepath.Join(dir, "sallyport.ts")},
	})
	for _, e := range result.Errors {
		t.Fatalf("esbuild: %s at %+v", e.Text, e.Location)
	}
	return result.OutputFiles[0].Contents
}

// runTypeScript compiles and runs a program that stands beside servers/.
func runTypeScript(t testing.TB, dir, program string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "program.cjs"), bundle(t, dir, program), 0o644); err != nil {
		t.Fatal(err)
	}
	return run(t, dir, "node", "program.cjs")
}

// upstreamWith is an upstream "up" with one tool.
func upstreamWith(t tool.Tool) []codegen.Upstream {
	t.ID.Upstream = "up"
	return []codegen.Upstream{{ID: "up", Tools: []tool.Tool{t}}}
}
