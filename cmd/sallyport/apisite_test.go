package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// apiSite is a folder with settings, in which the tests of APIs run commands and programs.
type apiSite struct{ dir, key string }

// newAPISite returns one without upstreams. key is the variable SHOP_KEY of commands.
func newAPISite(t *testing.T, key string) apiSite {
	t.Helper()
	s := apiSite{testutil.ShortDir(t), key}
	writeText(t, filepath.Join(s.dir, "upstreams.yaml"), "upstreams: {}\nsandbox: {runsc: "+testutil.Runsc(t)+", pool: {max: 0}}\n")
	return s
}

// run runs a command that must succeed and print want.
func (s apiSite) run(t *testing.T, want string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sallyport", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR="+s.dir, "SHOP_KEY="+s.key)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %v, want %s in\n%s", args, err, want, out)
	}
}

// exec runs a program that must succeed and print want. The extension of the name is its language.
func (s apiSite) exec(t *testing.T, want, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	writeText(t, path, text)
	s.run(t, want, "exec", path)
}
