package gateway_test

import (
	"context"
	"regexp"
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

// TestChosenEnvironment: a choice is in force for the session of the client that made it, for
// whatever names no environment, and for nobody else.
func TestChosenEnvironment(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", tlstest.Authority(t))
	cfg := withRunsc(t, settings(nil))
	cfg.Environments = map[string]config.Environment{
		"data": {Description: "has alpha.", Python: config.PythonPackages{Requirements: []string{"alpha==1.0"}, Index: packageindex.Serve(t, "alpha")}},
	}
	g := open(t, cfg, &gateway.Options{CacheDir: cacheFolder(t), DataDir: t.TempDir()})
	as := func(principal, session string) context.Context {
		return tool.WithSession(tool.WithPrincipal(t.Context(), principal), session)
	}
	ann := as("ann", "1")
	if said, err := g.Environments.ChooseEnvironment(ann, environments.Choice{Environment: "data"}); err != nil || !strings.HasPrefix(said, "Programs run in environment data (has alpha) from now on") {
		t.Fatalf("%q, %v", said, err)
	}
	run := func(ctx context.Context, environment, want string) {
		t.Helper()
		e, err := g.Executor.Execute(ctx, execution.Program{Code: "try:\n  import alpha\n  open('/workspace/a', 'w').write('abc'); r = alpha.NAME\nexcept ImportError:\n  r = 'not here'\nr", Environment: environment})
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, e, sandbox.OK, want)
	}
	run(ann, "", "alpha is here")
	run(ann, "default", "not here")
	for _, other := range []context.Context{as("ann", "2"), as("ann", ""), as("ben", "1"), as("", "1"), t.Context()} {
		run(other, "", "not here")
		if said, err := g.Environments.EnvironmentConfig(other); err != nil || !strings.HasPrefix(said, "environment: default\n") {
			t.Errorf("%q, %v", said, err)
		}
	}
	for asked, want := range map[string]string{"": "alpha 1.0", "default": "only the language's own library"} {
		if said, err := g.Environments.InstalledPackages(ann, environments.Packages{Environment: asked}); err != nil || said != want {
			t.Errorf("%q: %q, %v", asked, said, err)
		}
	}
	const want = `^environment: data \(has alpha\)
Python 3\.[0-9]+\.[0-9]+[^;]*, 1 packages; TypeScript on node [0-9.]+, 0 packages
one program: 1m, 512MiB memory, 1m of processors, 32 processes, 16KiB of output
/workspace: 3B of 256MiB, 1 of 50000 files and folders
there are: default, data \(has alpha\)$`
	if said, err := g.Environments.EnvironmentConfig(ann); err != nil || !regexp.MustCompile(want).MatchString(said) {
		t.Errorf("%s, %v", said, err)
	}
	if _, err := g.Environments.ChooseEnvironment(ann, environments.Choice{Environment: "default"}); err != nil {
		t.Error(err)
	}
	run(ann, "", "not here")
}

// TestChoices: what names an environment, and what is said where nothing does. No folder is looked at.
func TestChoices(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Environments = map[string]config.Environment{
		"data": {Python: config.PythonPackages{Base: "/srv/conda/envs/science"}}, "plots": {Description: "charts"},
	}
	g := open(t, &cfg, nil)
	const all = "there are: default, data, plots (charts)"
	for _, test := range []struct {
		name, folder, want string
		fails              bool
	}{
		{"plots", "", "environment plots (charts) from now on", false},
		{"", "data", "environment data from now on", false},
		{"", "science", "environment data from now on", false},
		{"", "/srv/conda/envs/science/", "environment data from now on", false},
		{"", "/srv/conda/envs/../envs/science", "environment data from now on", false},
		{"default", "", "environment default from now on", false},
		{"", "", all, true},
		{"", "new_env_name", all, true},
		{"", "/etc", all, true},
		{"", "/srv/conda/envs", all, true},
		{"plot", "", "did you mean plots? " + all, true},
		{"science", "", all, true},
		{"\x1b[2J" + strings.Repeat("x", 10_000), "", all, true},
		{"data\x00", "", all, true},
	} {
		said, err := g.Environments.ChooseEnvironment(t.Context(), environments.Choice{Environment: test.name, Folder: test.folder})
		if err != nil {
			said = err.Error()
		}
		if test.fails != (err != nil) || !strings.Contains(said, test.want) || strings.ContainsAny(said, "\x1b\x00") || len(said) > 1000 {
			t.Errorf("%.40q, %.40q: %.500s", test.name, test.folder, said)
		}
	}
	next := config.Default()
	if err := g.Reload(&next); err != nil {
		t.Fatal(err)
	}
	if said, err := g.Environments.EnvironmentConfig(t.Context()); err != nil || !strings.HasPrefix(said, "environment: default\n") || strings.Contains(said, "there are") {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := g.Environments.ChooseEnvironment(t.Context(), environments.Choice{Environment: "data"}); err == nil || !strings.Contains(err.Error(), "there is only default; the operator adds others") {
		t.Error(err)
	}
}
