//go:build linux

package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// hangs writes a runsc that does what a case of the shell says, and else what the real one does.
func hangs(t *testing.T, what string) string {
	t.Helper()
	return script(t, fmt.Sprintf("for verb; do case $verb in\n%s\nesac; done\nexec %s \"$@\"", what, testutil.Runsc(t)))
}

// TestKillingWhenRunscHangs stops programs whose runsc does not end, does not delete, or is stopped itself.
func TestKillingWhenRunscHangs(t *testing.T) {
	// One that stays when its container has gone: it starts the real one as its child, and sleeps after it.
	stays := fmt.Sprintf("run|restore) trap '' TERM HUP INT; %s \"$@\"; sleep 600;;", testutil.Runsc(t))
	for _, test := range []struct{ name, runsc string }{
		{"delete, list, kill and state hang", hangs(t, "delete|list|kill|state) sleep 600;;")},
		{"run stays", hangs(t, stays)},
		{"all of it", hangs(t, stays+"\ndelete|list|kill|state) sleep 600;;")},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := testutil.ShortDir(t)
			host := open(t, &sandbox.Options{Runsc: test.runsc, State: state})
			names := hostNames(t, state)
			job := sandboxtest.Job(sandbox.Python, "import os, time\nfor i in range(3):\n    if os.fork() == 0: break\nwhile True: pass")
			job.Limits.Timeout = 500 * time.Millisecond
			outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
			ended := time.Now()
			if err != nil || outcome.Status != sandbox.TimedOut {
				t.Errorf("outcome %+v, %v", outcome, err)
			}
			nothingRuns(t, state)
			t.Logf("nothing was left after %s", time.Since(ended))
			closeHost(t, host, state, names)
		})
	}
}

// nothingRuns waits until no process of any host in that state directory is left.
func nothingRuns(t *testing.T, state string) {
	t.Helper()
	const limit = 30 * time.Second
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		left := testutil.Processes(filepath.Join(state, "host-"))
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("processes left after %s: %v", limit, left)
		}
	}
}

// TestStaleHostWithoutRunsc: what a killed host left is cleared also if runsc hangs by then: a process, a mount and files.
func TestStaleHostWithoutRunsc(t *testing.T) {
	state := testutil.ShortDir(t)
	if err := os.MkdirAll(filepath.Join(state, "host-dead", "e-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "host-dead", "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	left := orphan(t, "sleep 600 # "+filepath.Join(state, "host-dead"), "--root="+filepath.Join(state, "host-dead", "runsc"))
	host := open(t, &sandbox.Options{Runsc: hangs(t, "delete|list|kill|state) sleep 600;;"), State: state})
	select {
	case <-left:
	case <-time.After(30 * time.Second):
		t.Error("the process is still there")
	}
	closeHost(t, host, state, nil)
}

// orphan starts a shell with that argument; what it returns is closed when it has ended.
func orphan(t *testing.T, code, argument string) <-chan struct{} {
	t.Helper()
	cmd := exec.Command("sh", "-c", code+"\n:", "sh", argument)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	return ended
}

// TestRestoreThatHangs: a restore that does not end is given up soon, and the pool fills without it.
func TestRestoreThatHangs(t *testing.T) {
	t.Parallel()
	first := filepath.Join(t.TempDir(), "hung")
	runsc := hangs(t, fmt.Sprintf("restore) if mkdir %s; then exec sleep 600; fi;;", first))
	host, state := openPooled(t, func(o *sandbox.Options) { o.Runsc = runsc })
	warm(t, host, sandbox.Python)
	if _, err := os.Stat(first); err != nil {
		t.Errorf("no restore was tried: %v", err)
	}
	if got := runValue(t, host, sandboxtest.Job(sandbox.Python, "6 * 7")); got != "42" {
		t.Errorf("value %s", got)
	}
	for _, command := range testutil.Processes(state) {
		if strings.Contains(command, "sleep") {
			t.Errorf("the restore that hung is still there: %s", command)
		}
	}
}
