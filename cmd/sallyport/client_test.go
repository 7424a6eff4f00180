package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"

	"sallyport/internal/testutil"
)

// TestClient generates wrappers with the built binary, and lets programs of a
// person's own use them, outside of any sandbox, with a gateway that serves.
func TestClient(t *testing.T) {
	checkers := testutil.Checkers(t)
	s := newSite(t, "")
	out := filepath.Join(t.TempDir(), "out")
	generate := exec.CommandContext(t.Context(), s.cmd.Path, "generate", "--config", filepath.Join(s.dir, "upstreams.yaml"), "--out", out)
	generate.Env = s.cmd.Env
	if text, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("generate: %v\n%s", err, text)
	}
	for _, name := range []string{"program.py", "program.ts"} {
		data, err := os.ReadFile(filepath.Join("testdata", "client", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &clientRun{dir: out, env: append(os.Environ(), "SALLYPORT_URL="+strings.TrimSuffix(s.url, "/mcp"), "SALLYPORT_TOKEN=a-token-for-a-test")}
	t.Run("python", func(t *testing.T) {
		c.config(t, "pyrightconfig.json", `{"include":["program.py"],"typeCheckingMode":"strict"}`)
		c.run(t, "node", filepath.Join(checkers, "pyright", "index.js"), "-p", "pyrightconfig.json")
		c.want(t, clientOutput, c.run(t, "python3", "program.py"))
	})
	t.Run("typescript", func(t *testing.T) {
		for _, module := range []string{`"nodenext"`, `"esnext","moduleResolution":"bundler"`} {
			c.config(t, "tsconfig.json", fmt.Sprintf(`{"compilerOptions":{"strict":true,"noEmit":true,"target":"es2022","module":%s,"types":["node"],"typeRoots":[%q]},"files":["program.ts"]}`,
				module, filepath.Join(checkers, "@types")))
			c.config(t, "package.json", `{"type":"module"}`)
			c.run(t, filepath.Join(checkers, ".bin", "tsc"), "-p", "tsconfig.json")
		}
		for _, bundle := range []bool{false, true} { // as the files are, and all in one
			built := api.Build(api.BuildOptions{EntryPoints: []string{filepath.Join(out, "program.ts")}, Bundle: bundle, Format: api.FormatESModule,
				Platform: api.PlatformNode, Outfile: filepath.Join(out, "program.js"), Write: true, AllowOverwrite: true, LogLevel: api.LogLevelSilent})
			if len(built.Errors) > 0 {
				t.Fatal(built.Errors)
			}
			c.want(t, strings.ReplaceAll(clientOutput, "Echo: later\n", ""), c.run(t, "node", "program.js"))
		}
	})
	s.terminate(t)
	s.waitStopped(t)
}

// clientOutput is what both programs print; Python writes lists in its own way.
const clientOutput = `The sum of 40 and 2 is 42.
["Echo: 0","Echo: 1","Echo: 2"]
Echo: later
["image/png"]
[1,2]
true
{"a":1}
long invalid everything.echo everything.echo(message
token denied everything.echo set SALLYPORT_TOKEN
gateway upstream everything.echo start it
`

type clientRun struct {
	dir string
	env []string
}

func (c *clientRun) config(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run returns what a program printed; the program must end well.
func (c *clientRun) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, testutil.Program(t, program), args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%.4000s", filepath.Base(program), args, err, out)
	}
	return string(out)
}

// want compares the output but for how the languages differ.
func (c *clientRun) want(t *testing.T, want, got string) {
	t.Helper()
	alike := strings.NewReplacer("': ", `":`, "'", `"`, ", ", ",", "True", "true", `": `, `":`, "({message", "(message")
	if diff := cmp.Diff(alike.Replace(want), alike.Replace(got)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, got)
	}
}
