//go:build linux

package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

func readPID(file string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

// TestCrash kills gVisor itself under a running program.
func TestCrash(t *testing.T) {
	host, state := newColdHost(t)
	job := sandboxtest.Job(sandbox.Python, "print('started', flush=True)\nimport time\ntime.sleep(60)")
	var started sync.Once
	job.OnOutput = func(sandbox.Stream, []byte) {
		started.Do(func() { _ = syscall.Kill(sentry(t, state, job.ID), syscall.SIGKILL) })
	}
	outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
	if err != nil || outcome.Status != sandbox.Crashed {
		t.Fatalf("outcome %+v, %v; want a crash", outcome, err)
	}
	next, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{})
	if err != nil || next.Status != sandbox.OK {
		t.Errorf("the next program: %+v, %v", next, err)
	}
}

// TestSlowMachine: the report of a program is read even if its processes have ended before this process knew of its begin.
func TestSlowMachine(t *testing.T) {
	host, _ := newColdHost(t)
	for interpreter, code := range map[sandbox.Interpreter]string{sandbox.Python: "6 * 7", sandbox.Node: "export default 6 * 7"} {
		report, err := sandbox.RunOnSlowMachine(t.Context(), host, sandboxtest.Job(interpreter, code))
		if err != nil || report.Result.Value == nil || report.Result.Value.Text != "42" {
			t.Errorf("%s: %+v, %v", interpreter, report, err)
		}
	}
}

func TestCancel(t *testing.T) {
	host, _ := newColdHost(t)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	outcome, err := host.Run(ctx, sandboxtest.Job(sandbox.Python, "import time\ntime.sleep(60)"), sandboxtest.Echo{})
	if err != nil || outcome.Status != sandbox.Canceled {
		t.Errorf("outcome %+v, %v; want canceled", outcome, err)
	}
}

// TestCancelAtAnyTime stops sandboxes at every stage of their start.
func TestCancelAtAnyTime(t *testing.T) {
	host, state := newColdHost(t)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Millisecond)
		outcome, err := host.Run(ctx, sandboxtest.Job(sandbox.Python, "import time\ntime.sleep(60)"), sandboxtest.Echo{})
		cancel()
		if err != nil || outcome.Status != sandbox.Canceled {
			t.Errorf("after %d ms: %+v, %v; want canceled", i*10, outcome, err)
		}
		if said := outcome.Stdout.Text + outcome.Stderr.Text; said != "" {
			t.Errorf("after %d ms: runsc speaks to the model: %s", i*10, said)
		}
	}
	if left := append(testutil.Processes(filepath.Join(state, "host-")), cgroups(hostNames(t, state))...); len(left) > 0 {
		t.Errorf("left while the host is open: %v", left)
	}
}

func TestCloseStopsWhatRuns(t *testing.T) {
	host, state := newColdHost(t)
	job := sandboxtest.Job(sandbox.Python, "import time\ntime.sleep(60)")
	ended := make(chan sandbox.Outcome, 1)
	go func() {
		outcome, _ := host.Run(context.Background(), job, sandboxtest.Echo{})
		ended <- outcome
	}()
	sentry(t, state, job.ID)
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	if outcome := <-ended; outcome.Status != sandbox.Canceled {
		t.Errorf("outcome %+v, want canceled", outcome)
	}
	if _, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{}); err == nil {
		t.Error("a closed host ran a program")
	}
}

// TestKilledHost kills a process with a running sandbox, and opens another host on the same state, or sweeps it.
func TestKilledHost(t *testing.T) {
	if state := os.Getenv("SALLYPORT_TEST_VICTIM"); state != "" {
		victim(t, state)
		return
	}
	runsc := testutil.Runsc(t)
	t.Run("open", func(t *testing.T) {
		state, names := killHost(t)
		host, err := sandbox.New(sandbox.Options{Runsc: runsc, Guest: runtime.Guest(), State: state, Logger: testutil.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		if hosts, _ := filepath.Glob(filepath.Join(state, "host-*")); len(hosts) != 1 {
			t.Errorf("state of the killed gateway is still there: %v", hosts)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, state, names...)
	})
	t.Run("sweep", func(t *testing.T) {
		state, names := killHost(t)
		if hosts, _ := filepath.Glob(filepath.Join(state, "host-*")); len(hosts) != 1 {
			t.Errorf("the killed gateway left %v", hosts)
		}
		if err := sandbox.Sweep(state, testutil.Logger(t)); err != nil {
			t.Error(err)
		}
		nothingLeft(t, state, names...)
	})
}

// killHost returns what a killed process left, and the names of its hosts.
func killHost(t *testing.T) (state string, names []string) {
	t.Helper()
	state = testutil.ShortDir(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledHost$")
	cmd.Env = append(os.Environ(), "SALLYPORT_TEST_VICTIM="+state)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "running\n" {
		t.Fatalf("the victim said %q", line)
	}
	names = hostNames(t, state)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testutil.NoProcesses(t, state)
	return state, names
}

// victim runs a program and a service for ever and says when it has started.
func victim(t *testing.T, state string) {
	t.Helper()
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: state})
	if err != nil {
		t.Fatal(err)
	}
	job := sandboxtest.Job(sandbox.Python, "import time\ntime.sleep(600)")
	if _, err := host.Serve(service(t, "service")); err != nil {
		t.Fatal(err)
	}
	go func() {
		sentry(t, state, job.ID)
		sentry(t, state, "service")
		time.Sleep(300 * time.Millisecond)
		fmt.Println("running")
	}()
	_, _ = host.Run(context.Background(), job, sandboxtest.Echo{})
}

func TestNoRunscNoProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, path := range []string{"", "/nonexistent/runsc", t.TempDir()} {
		if _, err := sandbox.New(sandbox.Options{Runsc: path, Guest: runtime.Guest(), State: t.TempDir()}); err == nil {
			t.Errorf("A20: a host without runsc (%q) was opened", path)
		}
	}
}

// TestSandboxThatDoesNotStart has a runsc that fails: its words are for the operator.
func TestSandboxThatDoesNotStart(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "runsc")
	testutil.WriteProgram(t, broken, "#!/bin/sh\necho 'cannot mount /secret/path' >&2\nexit 128\n")
	state := testutil.ShortDir(t)
	host, err := sandbox.New(sandbox.Options{Runsc: broken, Guest: runtime.Guest(), State: state, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{})
	if err == nil || !strings.Contains(err.Error(), "status 128 before the program began: cannot mount") || outcome.Stderr.Text != "" {
		t.Errorf("outcome %+v, %v; want an error with runsc's own words", outcome, err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	nothingLeft(t, state)
}
