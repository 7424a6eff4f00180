package gateway_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/packageindex"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// venvs makes virtual environments, each with a module that says its name, in a folder outside of /tmp.
func venvs(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-venvs-") //nolint:usetesting // below /tmp no folder can be mapped
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range names {
		if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-m", "venv", "--without-pip", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		found, err := filepath.Glob(filepath.Join(dir, name, "lib", "python3*", "site-packages"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if err := os.WriteFile(filepath.Join(found[0], "mine.py"), []byte("NAME = 'of "+name+"'\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestKeptPackages: what a model installs where install is keep is there after a restart, for its principal only; and what
// fails, also on top of a base, breaks nothing.
func TestKeptPackages(t *testing.T) {
	cfg := withRunsc(t, settings(nil))
	dir, data, cache := venvs(t, "base"), t.TempDir(), cacheFolder(t)
	cfg.Environments = map[string]config.Environment{
		"kept": {Python: config.PythonPackages{Base: filepath.Join(dir, "base"), Index: packageindex.Serve(t, "alpha", "beta")}, Install: true, Keep: true},
	}
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	ann := tool.WithPrincipal(t.Context(), "ann")
	const uses = "import alpha, mine; alpha.NAME + ' ' + mine.NAME"
	run := func(g *gateway.Gateway, principal, code string) execution.Result {
		t.Helper()
		e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), principal), execution.Program{Code: code, Environment: "kept"})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	g := open(t, cfg, &gateway.Options{DataDir: data, CacheDir: cache})
	if _, err := g.Environments.InstallPackages(ann, environments.Packages{Names: []string{"alpha"}, Environment: "kept"}); err != nil {
		t.Fatal(err)
	}
	wantText(t, run(g, "ann", uses), sandbox.OK, "alpha is here of base")
	if _, err := g.Environments.InstallPackages(ann, environments.Packages{Names: []string{"gamma"}, Environment: "kept"}); err == nil {
		t.Error("a package that is not there was installed")
	}
	wantText(t, run(g, "ann", uses), sandbox.OK, "alpha is here of base")
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, cfg, &gateway.Options{DataDir: data, CacheDir: cache})
	wantText(t, run(again, "ann", uses), sandbox.OK, "alpha is here of base")
	wantText(t, run(again, "ben", uses), sandbox.Failed, "alpha is not installed")
}

// TestBasePattern: a client selects a folder that matches the pattern of an environment, and no other.
func TestBasePattern(t *testing.T) {
	cfg := withRunsc(t, settings(nil))
	dir, writable := venvs(t, "one", "two", "other"), venvs(t, "three")
	cfg.Environments = map[string]config.Environment{
		"venvs": {Python: config.PythonPackages{Base: dir + "/[ot][nw]*"}}, "open": {Python: config.PythonPackages{Base: writable + "/*"}},
	}
	cfg.Workspaces = map[string]config.MappedFolder{"code": {Path: writable, Mode: config.ModeWrite}}
	g := open(t, cfg, &gateway.Options{CacheDir: cacheFolder(t)})
	choose := func(c environments.Choice) error {
		_, err := g.Environments.ChooseEnvironment(t.Context(), c)
		return err
	}
	run := func(p execution.Program) string {
		p.Code = "import mine; mine.NAME"
		e, err := g.Executor.Execute(t.Context(), p)
		if err != nil {
			return err.Error()
		}
		return e.Text()
	}
	for folder, want := range map[string]string{dir + "/one": "of one", "two": "of two", dir + "/x/../one/": "of one"} {
		if err := choose(environments.Choice{Folder: folder}); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
		if got := run(execution.Program{}); got != want {
			t.Errorf("%s: %s", folder, got)
		}
	}
	for folder, want := range map[string]string{
		dir + "/other": "there is no environment", "other": "there is no environment", dir + "/one/../../x": "there is no environment", "/etc": "there is no environment", dir: "there is no environment",
		"venvs": "environment venvs stands for several folders (choose one by configure_environment: one, two)",
	} {
		if err := choose(environments.Choice{Folder: folder}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	if got := run(execution.Program{Environment: dir + "/two"}); got != "of two" {
		t.Errorf("named by a program: %s", got)
	}
	if got := run(execution.Program{Environment: "venvs"}); !strings.Contains(got, "stands for several folders") {
		t.Errorf("the pattern itself: %s", got)
	}
	if got := run(execution.Program{Environment: writable + "/three"}); !strings.Contains(got, "could not be made") {
		t.Errorf("in a workspace that programs can change: %s", got)
	}
}

// TestPackagesOfCluster: what a model installs at one gateway of a store is installed at the others when a program of the same principal
// needs it, also at one that starts later.
func TestPackagesOfCluster(t *testing.T) {
	cfg := withRunsc(t, settings(nil))
	cfg.Environments = map[string]config.Environment{
		"data": {Python: config.PythonPackages{Index: packageindex.Serve(t, "alpha", "beta")}, Install: true},
	}
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	servers, cache := natscluster.Start(t, 1), cacheFolder(t)
	start := func() *gateway.Gateway {
		return open(t, cfg, &gateway.Options{DataDir: t.TempDir(), CacheDir: cache, Records: storetest.Connect(t, servers.Server(""))})
	}
	run := func(g *gateway.Gateway, principal, code string) execution.Result {
		t.Helper()
		e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), principal), execution.Program{Code: code, Environment: "data"})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, two := start(), start()
	var work sync.WaitGroup
	for name, g := range map[string]*gateway.Gateway{"alpha": one, "beta": two} {
		work.Go(func() {
			if _, err := g.Environments.InstallPackages(tool.WithPrincipal(t.Context(), "ann"), environments.Packages{Names: []string{name}, Environment: "data"}); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	for _, g := range []*gateway.Gateway{one, two, start()} {
		testutil.Eventually(t, "a program imports both", time.Minute, func() bool {
			r := run(g, "ann", "import alpha, beta; alpha.NAME + ', ' + beta.NAME")
			return r.Status == sandbox.OK && r.Text() == "alpha is here, beta is here"
		})
		wantText(t, run(g, "ben", "import alpha"), sandbox.Failed, "alpha is not installed")
	}
}
