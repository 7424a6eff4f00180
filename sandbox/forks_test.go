//go:build linux

package sandbox_test

import (
	"strings"
	"testing"

	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestForksOfASession: the faults of forked processes are told of in each program of a session.
func TestForksOfASession(t *testing.T) {
	host, _ := newHost(t)
	const code = `import os
for i in range(5):
    if os.fork() == 0:
        1 / 0
    os.wait()`
	for i := range 3 {
		job := sandboxtest.Job(sandbox.Python, code)
		job.Session = "s"
		outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
		if err != nil || outcome.Status != sandbox.OK || outcome.Reused != (i > 0) {
			t.Fatalf("%+v, %v", outcome, err)
		}
		if n := strings.Count(outcome.Stderr.Text, "forked process "); n != 3 {
			t.Errorf("program %d: %d faults are told of:\n%s", i+1, n, outcome.Stderr.Text)
		}
	}
}
