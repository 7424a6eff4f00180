//go:build linux

package sandbox_test

import (
	"strings"
	"testing"

	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestCutOutputIsReadByTheNextProgram prints more than is shown, of a program that ends and of one that is stopped.
func TestCutOutputIsReadByTheNextProgram(t *testing.T) {
	host, _ := newHost(t)
	ws, _ := openWorkspace(t, workspace.Options{})
	run := func(code string) sandbox.Outcome {
		job := sandboxtest.Job(sandbox.Python, code)
		job.Workspace, job.Limits.CPU = ws, job.Limits.Timeout
		outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
		if err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	path := func(text string) string {
		_, after, _ := strings.Cut(text, " bytes cut; ")
		_, after, _ = strings.Cut(after, ": ")
		path, _, _ := strings.Cut(after, " ...]")
		return path
	}
	first := run("for i in range(20000): print(i)")
	second := run("import os\nwhile True: os.write(2, b'y' * 65536)")
	if first.Status != sandbox.OK || second.Status != sandbox.Flooded || len(first.Notes)+len(second.Notes) > 0 {
		t.Fatalf("%s, %s, notes %q, %q", first.Status, second.Status, first.Notes, second.Notes)
	}
	third := run("whole = open('" + path(first.Stdout.Text) + "').read()\nwhole == ''.join(f'{i}\\n' for i in range(20000)), len(open('" + path(second.Stderr.Text) + "').read())")
	if third.Value == nil || third.Value.Text != "[true,16777216]" {
		t.Errorf("%s, value %+v, fault %+v; first %.40q", third.Status, third.Value, third.Fault, path(first.Stdout.Text))
	}
}

// TestOutputAfterTheEnd: what processes of a program print after its end is not in its output, and does not disturb
// what is made of that (the race detector would see it); in a session it is in that of the next program.
func TestOutputAfterTheEnd(t *testing.T) {
	host, _ := newHost(t)
	ws, _ := openWorkspace(t, workspace.Options{})
	for range 8 {
		job := sandboxtest.Job(sandbox.Python, "import subprocess\nsubprocess.Popen(['sh', '-c', 'yes | head -c 4000000'])\nprint('x' * 100_000, flush=True)")
		job.Workspace, job.Session = ws, "s"
		outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
		if err != nil || outcome.Status != sandbox.OK || outcome.Stdout.Cut == 0 {
			t.Errorf("%s, %.40q, %v", outcome.Status, outcome.Stdout.Text, err)
		}
	}
}
