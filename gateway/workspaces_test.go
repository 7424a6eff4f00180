package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/workspaces"
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
		e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), principal), execution.Program{Code: code, Language: language})
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

// TestNamedWorkspaces: each name is a folder of its own, for programs and sessions too; a name that is none is told.
func TestNamedWorkspaces(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(nil))
	cfg.Sandbox.Timeout = 20 * time.Second
	g := open(t, cfg, &gateway.Options{DataDir: t.TempDir()})
	ctx := tool.WithPrincipal(t.Context(), "ada")
	for _, step := range []struct{ workspace, header, session, code, want string }{
		{"one", "", "s", `x = 1; open("f", "w").write("of one"); import os; os.symlink("f", "link")`, ""},
		{"two", "", "s", `import os; (os.listdir("."), "x" in globals())`, "[[],false]"},
		{"", "one", "s", `(open("f").read(), x, sorted(__import__("os").listdir(".")))`, `["of one",1,["f","link"]]`},
		{"", "", "", `import os; os.listdir(".")`, "[]"},
		{"default", "one", "", `import os; os.listdir(".")`, "[]"},
	} {
		e, err := g.Executor.Execute(tool.WithWorkspace(ctx, step.header), execution.Program{Code: step.code, Workspace: step.workspace, Session: step.session})
		if err != nil || e.Status != sandbox.OK || step.want != "" && e.Value.Text != step.want {
			t.Errorf("%+v: %v\n%s", step, err, e.Text())
		}
	}
	for _, name := range badNames() {
		if _, err := g.Executor.Execute(ctx, execution.Program{Code: "1", Workspace: name}); err == nil || tool.AsError(err).Kind != tool.Invalid || len(err.Error()) > 250 {
			t.Errorf("%.40q: %v", name, err)
		}
	}
}

// badNames are names of workspaces that there cannot be.
func badNames() []string {
	return []string{"..", "../ada", "a/b", "/etc", ".", ".hidden", "a\x00b", "con", "NUL", "Ada", "ａ", "e\u0301", "a\u202eb", "a\u200b", "a.", "a ", " a", `a\b`, "+shared", "~", strings.Repeat("a", 10_000)}
}

// TestTooManyWorkspaces: there is an end to new ones, and those that are there can be used.
func TestTooManyWorkspaces(t *testing.T) {
	t.Parallel()
	cfg, data := withRunsc(t, settings(nil)), t.TempDir()
	for i := range 100 {
		if err := os.MkdirAll(filepath.Join(data, "workspaces", "ada", fmt.Sprintf("w%d", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g := open(t, cfg, &gateway.Options{DataDir: data})
	_, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), "ada"), execution.Program{Code: "1", Workspace: "another"})
	if err == nil || tool.AsError(err).Kind != tool.Limit || !strings.Contains(err.Error(), "w0, w1, w10") {
		t.Errorf("another: %v", err)
	}
	if e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), "ada"), execution.Program{Code: "1", Workspace: "w7"}); err != nil || e.Status != sandbox.OK {
		t.Errorf("w7: %v", err)
	}
}

// TestTwoAtOnce: of two programs on one workspace each has a copy of its own, and the last to end wins, file by file.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(nil))
	cfg.Sandbox.Timeout = 20 * time.Second
	g := open(t, cfg, &gateway.Options{DataDir: t.TempDir()})
	var both sync.WaitGroup
	for _, who := range []string{"one", "two"} {
		both.Go(func() {
			code := fmt.Sprintf(`import time
for i in range(20):
    open("shared", "w").write("%[1]s" * 10000)
    open("%[1]s", "w").write("%[1]s")
    time.sleep(0.01)
open("shared").read() == "%[1]s" * 10000`, who)
			if e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code}); err != nil || e.Text() != "true" {
				t.Errorf("%s: %v %s", who, err, e.Text())
			}
		})
	}
	both.Wait()
	e, err := g.Executor.Execute(t.Context(), execution.Program{Code: `(open("one").read(), open("two").read(), open("shared").read() in ("one" * 10000, "two" * 10000))`})
	if err != nil || e.Text() != `["one","two",true]` {
		t.Errorf("%v %s", err, e.Text())
	}
}

// TestFilesOfOthers: nobody gets at another principal's files, through any verb and any name.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	g := open(t, settings(nil), &gateway.Options{DataDir: data})
	ada := tool.WithPrincipal(t.Context(), "ada")
	if _, err := g.Workspaces.WriteFile(ada, workspaces.FileWrite{Path: "secret.py", Workspace: "app", Verb: workspaces.FileReplace, Content: "canary"}); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"", "bob", "Ada", "ada ", "../ada", "ada/app", "ada\x00", ".", "workspaces/ada"} {
		ctx := tool.WithPrincipal(t.Context(), who)
		for _, name := range []string{"app", "ada", "../ada/app", "+ada", "app/../app"} {
			for _, path := range []string{"secret.py", "app/secret.py", "../../ada/app/secret.py", "/workspace/../ada/app/secret.py", filepath.Join(data, "workspaces", "ada", "app", "secret.py")} {
				read, readErr := g.Workspaces.ReadFile(ctx, workspaces.FileRead{Workspace: name, Path: path})
				listed, listErr := g.Workspaces.ListFiles(tool.WithWorkspace(ctx, name), "", path)
				_, runErr := g.Executor.Execute(ctx, execution.Program{Workspace: name, File: path})
				_, writeErr := g.Workspaces.WriteFile(ctx, workspaces.FileWrite{Workspace: name, Path: path, Verb: workspaces.FileAppend, Content: "!"})
				if said := fmt.Sprint(read, readErr, listed, listErr, runErr, writeErr); readErr == nil || runErr == nil || writeErr == nil || strings.Contains(said, "canary") {
					t.Errorf("%q in %q at %q: %s", who, name, path, said)
				}
			}
		}
	}
	if text, err := g.Workspaces.ReadFile(ada, workspaces.FileRead{Workspace: "app", Path: "secret.py"}); err != nil || text != "canary" {
		t.Errorf("ada reads %q, %v", text, err)
	}
}
