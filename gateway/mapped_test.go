package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/workspaces"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestMappedFolders: programs work on a folder of the operator's, whoever may, and what may be kept of it is.
func TestMappedFolders(t *testing.T) {
	t.Parallel()
	app, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	for path, content := range map[string]string{filepath.Join(app, "a.py"): "x = 1", filepath.Join(app, "run.sh"): "#!/bin/sh\necho ran", outside: "canary"} {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(app, "link")); err != nil {
		t.Fatal(err)
	}
	cfg := withRunsc(t, settings(nil))
	cfg.Sandbox.Timeout = 20 * time.Second
	cfg.Workspaces = map[string]config.MappedFolder{"ro": {Path: app, Mode: "ro"}, "rw": {Path: app, Mode: "rw", Principals: []string{"ada"}}}
	g := open(t, cfg, &gateway.Options{DataDir: t.TempDir()})
	local := t.Context()
	ada, bob := tool.WithPrincipal(local, "ada"), tool.WithPrincipal(local, "bob")
	const list = `import os; sorted(os.listdir("."))`
	const readOnly = "note: not kept: \"a.py\" (as 1 more: the folder is mapped read-only)"
	for _, step := range []struct {
		who                   context.Context //nolint:containedctx // a row of the table
		workspace, code, want string
	}{
		{local, "ro", list, "[\"a.py\",\"run.sh\"]\nnote: not in the sandbox: \"link\" (a link, which is not followed)"},
		{local, "ro", `open("a.py", "w").write("evil"); open("new", "w").write("1"); import subprocess; subprocess.run(["./run.sh"], capture_output=True).stdout.decode()`, "ran\n" + readOnly},
		{local, "ro", `open("a.py").read()`, "x = 1"},
		{ada, "rw", `import os; os.symlink("/etc/passwd", "passwd"); os.makedirs(".git/hooks"); open(".git/hooks/pre-commit", "w").write("1"); open("a.py", "a").write("\ny = 2"); open("b.py", "w").write(""); None`, "*"},
		{ada, "rw", list, `["a.py","b.py","run.sh"]`},
		{ada, "ro", list, `[]`},
		{bob, "rw", list, `[]`},
		{tool.WithRemote(local), "rw", list, `[]`},
		{bob, "rw", `open("mine", "w").write("of bob")`, "6"},
		{local, "rw", list, "*[\"a.py\",\"b.py\",\"run.sh\"]"},
	} {
		e, err := g.Executor.Execute(step.who, execution.Program{Code: step.code, Workspace: step.workspace})
		if err != nil || e.Status != sandbox.OK {
			t.Errorf("%s in %s: %v %s", step.code, step.workspace, err, e.Text())
			continue
		}
		got := strings.TrimSpace(e.Text())
		if want, some := strings.CutPrefix(step.want, "*"); got != step.want && (!some || !strings.Contains(got, want)) {
			t.Errorf("%s in %s: %s", step.code, step.workspace, got)
		}
	}
	names, _ := filepath.Glob(filepath.Join(app, "*"))
	hidden, _ := filepath.Glob(filepath.Join(app, ".*"))
	if content, err := os.ReadFile(filepath.Join(app, "a.py")); err != nil || string(content) != "x = 1\ny = 2" || len(names) != 4 || len(hidden) != 0 {
		t.Errorf("a.py is %q (%v), among %q and %q", content, err, names, hidden)
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != "canary" {
		t.Errorf("outside is %q, %v", content, err)
	}
	if _, err := g.Workspaces.WriteFile(local, workspaces.FileWrite{Workspace: "ro", Path: "a.py", Verb: workspaces.FileReplace}); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("written by a tool: %v", err)
	}
	if _, err := g.Workspaces.ReadFile(local, workspaces.FileRead{Workspace: "ro", Path: "link"}); err == nil {
		t.Error("a link was read")
	}
}

// TestUnmappable: what no program may see is refused, whatever links lead to it.
func TestUnmappable(t *testing.T) {
	t.Parallel()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	for _, name := range []string{"state/data/workspaces", "state/cache", "project", "secret"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"root": "/", "home": home, "data": at("state/data"), "proc": "/proc/self"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	cfg := settings(nil)
	cfg.Path, cfg.Files = at("project/upstreams.yaml"), []string{at("secret/token")}
	for name, m := range map[string]config.MappedFolder{
		"root": {Path: at("root")}, "home": {Path: at("home")}, "data": {Path: at("data")}, "above": {Path: at("state")}, "inside": {Path: at("state/data/workspaces")},
		"cache": {Path: at("state/cache")}, "secret": {Path: at("secret")}, "proc": {Path: at("proc")}, "tmp": {Path: os.TempDir()}, "none": {Path: at("none")},
		"settings": {Path: at("project"), Mode: "rw"},
	} {
		cfg.Workspaces = map[string]config.MappedFolder{"app": m}
		g := open(t, cfg, &gateway.Options{DataDir: at("state/data"), CacheDir: at("state/cache")})
		if text, err := g.Workspaces.ListFiles(t.Context(), "app", ""); err == nil || tool.AsError(err).Kind != tool.Denied || strings.Contains(err.Error(), top) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	cfg.Workspaces = map[string]config.MappedFolder{"app": {Path: at("project"), Mode: "ro"}}
	if _, err := open(t, cfg, &gateway.Options{DataDir: at("state/data"), CacheDir: at("state/cache")}).Workspaces.ListFiles(t.Context(), "app", ""); err != nil {
		t.Errorf("a folder with the settings, read-only: %v", err)
	}
}
