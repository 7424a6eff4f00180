//go:build linux

package sandbox_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
)

// script writes an executable shell script.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	testutil.WriteProgram(t, path, "#!/bin/sh\n"+body+"\n")
	return path
}

func TestChecksWhereAllIsWell(t *testing.T) {
	state := testutil.ShortDir(t)
	checks := sandbox.Checks(t.Context(), sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: state})
	var names []string
	for _, check := range checks {
		names = append(names, check.Name)
		if !check.OK || check.Detail == "" || check.Fix != "" && !check.Warn {
			t.Errorf("%+v", check)
		}
	}
	if got := strings.Join(names, ", "); got != "runsc, platform, user namespaces, python, node, limits, sandbox with python, sandbox with node" {
		t.Errorf("checks: %s", got)
	}
	nothingLeft(t, state)
}

// TestChecksFindWhatIsWrong breaks one thing after the other. That one must fail, with a fix, and no other.
func TestChecksFindWhatIsWrong(t *testing.T) {
	shim := script(t, "exec /usr/bin/node \"$@\"")
	for _, test := range []struct {
		name    string
		change  func(o *sandbox.Options)
		fails   string
		details string
	}{
		{"no runsc", func(o *sandbox.Options) { o.Runsc = "/nonexistent/runsc" }, "runsc", "was not found"},
		{"a runsc that does not run", func(o *sandbox.Options) { o.Runsc = script(t, "exit 1") }, "runsc", "does not run: runsc --version: exit status 1"},
		{"a runsc that hangs", func(o *sandbox.Options) { o.Runsc = script(t, "exec sleep 600") }, "runsc", "does not run: runsc --version: "},
		{"no python", func(o *sandbox.Options) { o.Python = "/nonexistent/python3" }, "python", "no such file"},
		{"no node", func(o *sandbox.Options) { o.Node = "/nonexistent/node" }, "node", "no such file"},
		{"a shim for node", func(o *sandbox.Options) { o.Node = shim }, "node", "is a script that starts an interpreter"},
		{"a program that has no version", func(o *sandbox.Options) { o.Python = "/usr/bin/false" }, "python", "does not run"},
		{"a program of another version", func(o *sandbox.Options) { o.Node = "/usr/bin/python3" }, "node", "is too old"},
		{"a state directory that is too long", func(o *sandbox.Options) { o.State = "/tmp/" + strings.Repeat("x", 60) }, "sandbox", "too long"},
		{"a program that is no python", func(o *sandbox.Options) { o.Python = "/usr/bin/node" }, "sandbox with python", "ended with status 9 before the program began"},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: testutil.ShortDir(t)}
			test.change(&options)
			for _, check := range sandbox.Checks(t.Context(), options) {
				switch {
				case check.OK == (check.Name == test.fails):
					t.Errorf("%+v", check)
				case !check.OK && (check.Fix == "" || !strings.Contains(check.Detail, test.details)):
					t.Errorf("%+v; want %q", check, test.details)
				}
			}
		})
	}
}
