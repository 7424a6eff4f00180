package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/internal/config"
	"sallyport/internal/testutil/packageindex"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// cacheFolder is one that t can remove, with read-only folders in it.
func cacheFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	return dir
}

// TestEnvironments: programs find the packages of the environment that they ask
// for, a model can install more where it may, and only for its own principal.
func TestEnvironments(t *testing.T) {
	cfg := withRunsc(t, settings(nil))
	index := packageindex.Serve(t, "alpha", "beta")
	cfg.Environments = map[string]config.Environment{
		"default": {},
		"data":    {Python: config.PythonPackages{Requirements: []string{"alpha==1.0"}, Index: index}, Install: true},
		"none":    {Python: config.PythonPackages{Requirements: []string{"gamma"}, Index: index}},
	}
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	g := open(t, cfg, &gateway.Options{CacheDir: cacheFolder(t)})
	run := func(principal, environment, code string) execution.Result {
		t.Helper()
		e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), principal), execution.Program{Code: code, Environment: environment})
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		return e
	}
	install := func(environment string, names ...string) (string, error) {
		return g.Environments.InstallPackages(tool.WithPrincipal(t.Context(), "ann"), environments.Packages{Names: names, Environment: environment})
	}
	const alpha, beta = "import alpha; alpha.NAME", "import beta; beta.NAME"
	wantText(t, run("ann", "data", alpha), sandbox.OK, "alpha is here")
	wantText(t, run("ann", "", alpha), sandbox.Failed, "hint: alpha is not installed; the operator can add alpha to environments.default.python.requirements")
	wantText(t, run("ann", "data", beta), sandbox.Failed, `hint: beta is not installed: install_dependencies(packages=["beta"], environment="data")`)
	if said, err := install("data", "beta"); err != nil || said != "installed: beta 1.0. The next program can import them; sessions restart." {
		t.Errorf("%q, %v", said, err)
	}
	wantText(t, run("ann", "data", beta), sandbox.OK, "beta is here")
	wantText(t, run("ann", "data", alpha), sandbox.OK, "alpha is here")
	wantText(t, run("ben", "data", beta), sandbox.Failed, "beta is not installed")
	for _, test := range []struct {
		environment string
		packages    []string
		want        string
	}{
		{"data", []string{"gamma"}, "gamma"},
		{"data", []string{"resets"}, "resets"},
		{"data", []string{"--index-url=http://example.com"}, "refused"},
		{"data", nil, "packages is empty"},
		{"", []string{"beta"}, "packages cannot be installed in environment default (they can in data)"},
		{"date", []string{"beta"}, "did you mean data?"},
	} {
		if said, err := install(test.environment, test.packages...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("install %q in %q: %q, %v", test.packages, test.environment, said, err)
		}
	}
	wantText(t, run("ann", "data", beta), sandbox.OK, "beta is here") // what could not be installed is in nobody's way
	if said, err := g.Environments.InstalledPackages(tool.WithPrincipal(t.Context(), "ann"), environments.Packages{Environment: "data"}); err != nil || said != "alpha 1.0\nbeta 1.0" {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := g.Environments.InstalledPackages(t.Context(), environments.Packages{Environment: "data", Names: []string{"alpha", "beta"}}); err != nil || said != "alpha 1.0\nbeta: not installed" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := g.Executor.Execute(t.Context(), execution.Program{Code: "1", Environment: "none"}); err == nil || !strings.Contains(err.Error(), "gamma") {
		t.Errorf("an environment that cannot be made: %v", err)
	}
}

// TestSessionsOfPrincipals: variables stay in a session, and neither another
// principal nor another client of the same one sees them.
func TestSessionsOfPrincipals(t *testing.T) {
	g := open(t, withRunsc(t, settings(nil)), nil)
	run := func(principal, client, session, code string) execution.Result {
		t.Helper()
		e, err := g.Executor.Execute(tool.WithSession(tool.WithPrincipal(t.Context(), principal), client), execution.Program{Code: code, Session: session})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	wantText(t, run("ann", "1", "work", "x = 5"), sandbox.OK)
	wantText(t, run("ann", "1", "work", "x + 1"), sandbox.OK, "6")
	for _, other := range [][3]string{{"ben", "1", "work"}, {"ann", "2", "work"}, {"ann", "1", "play"}, {"", "", "work"}, {"ann", "1", ""}} {
		wantText(t, run(other[0], other[1], other[2], "x"), sandbox.Failed, "NameError")
	}
	wantText(t, run("ann", "1", "work", "import os; os._exit(3)"), sandbox.Exited)
	wantText(t, run("ann", "1", "work", "x"), sandbox.Failed, "NameError", "note: session work had ended: no variable of its earlier programs is left")
}
