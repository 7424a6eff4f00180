package gateway_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestWorkspaceIsKept: a file of one program is there for the next, in another language
// and after a restart too; whoever else asks does not see it, whatever they are called.
func TestWorkspaceIsKept(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(nil))
	cfg.Sandbox.Timeout = 20 * time.Second
	data := t.TempDir()
	run := func(g *gateway.Gateway, principal, language, code, want string) {
		t.Helper()
		e, err := g.Execute(tool.WithPrincipal(t.Context(), principal), gateway.Program{Code: code, Language: language})
		if err != nil || e.Status != sandbox.OK || e.Text() != want {
			t.Errorf("%q: %v, %s: %s; want %s", principal, err, e.Status, e.Text(), want)
		}
	}
	const list = `import os; " ".join(sorted(os.listdir("/workspace"))) or "nothing"`
	g := open(t, cfg, &gateway.Options{DataDir: data})
	run(g, "ada", "", `open("/workspace/a.txt", "w").write("from ada")`, "8")
	run(g, "ada", "typescript", `import fs from "node:fs"; export default fs.readFileSync("/workspace/a.txt", "utf8")`, "from ada")
	for _, other := range []string{"", "bob", "../ada", "ada/default", "ADA"} {
		run(g, other, "", list, "nothing")
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	run(open(t, cfg, &gateway.Options{DataDir: data}), "ada", "", list, "a.txt")
	if kept, err := os.ReadFile(filepath.Join(data, "workspaces", "ada", "default", "a.txt")); err != nil || string(kept) != "from ada" {
		t.Errorf("on the host: %q, %v", kept, err)
	}
}
