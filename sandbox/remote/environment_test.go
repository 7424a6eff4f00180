//go:build linux

package remote_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestEnvironment runs programs in an environment of the worker's, also from an idle sandbox. One that it does not have is refused by name.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	dir := testutil.ShortDir(t)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "mine.py"), []byte("NAME = 'of the worker'\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	m.opts.Host.Environments = map[string]sandbox.Environment{"data": {Layers: map[string]string{"/opt/packages/python": dir}, PythonPath: []string{"/opt/packages/python"}}}
	c := newClient(t, m, sandbox.Pool{Min: 1, Max: 2})
	in := func(environment string) sandbox.Job {
		job := sandboxtest.Job(sandbox.Python, "import mine\nmine.NAME")
		job.Environment = environment
		return job
	}
	if o := run(t, c, in("")); o.Fault == nil || o.Fault.Type != "ModuleNotFoundError" {
		t.Errorf("without an environment: %+v", o)
	}
	wants(t, c, in("data"), `"of the worker"`)
	c.Warm(in("data"), in("other"))
	wants(t, c, in("data"), `"of the worker"`)
	if _, err := c.Run(t.Context(), in("other"), sandboxtest.Echo{}); err == nil || !strings.Contains(err.Error(), "ssh://box does not have the environment other") {
		t.Errorf("%v", err)
	}
}
