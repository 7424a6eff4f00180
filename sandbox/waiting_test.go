//go:build linux

package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// newPooledHost opens a host whose sandboxes wait, restored from snapshots.
func newPooledHost(t *testing.T, state string) *sandbox.Host {
	t.Helper()
	return open(t, &sandbox.Options{State: state, Pool: sandbox.Pool{Min: 1, Max: 1}})
}

// TestLimitsOfASandboxThatWaited: what is fixed in a snapshot holds in what is restored from it, and the time
// and memory that a sandbox used while it waited are not its program's.
func TestLimitsOfASandboxThatWaited(t *testing.T) {
	state := testutil.ShortDir(t)
	host := newPooledHost(t, state)
	names := hostNames(t, state)
	defer closeHost(t, host, state, names)
	for _, test := range []struct {
		interpreter sandbox.Interpreter
		code, value string
		status      sandbox.Status
	}{
		{sandbox.Python, full, `["ENOSPC",true]`, sandbox.OK},
		{sandbox.Python, "open('x', 'wb').write(bytes(9 << 20))", "", sandbox.Failed},
		{sandbox.Python, "while True: pass", "", sandbox.OutOfCPU},
		{sandbox.Python, "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n1", "1", sandbox.OK},
		{sandbox.Node, "import fs from 'node:fs'; let n; try { for (let i = 0; i < 1000; i++) fs.writeFileSync(`${i}`, ''); } catch (e) { n = e.code; } export default n;", `"ENOSPC"`, sandbox.OK},
		{sandbox.Node, "for (;;);", "", sandbox.OutOfCPU},
	} {
		for round := range 2 { // the first may be from nothing, the second is not
			host.Warm(limited(test.interpreter, ""))
			awaitFull(t, host, test.interpreter)
			outcome, err := host.Run(t.Context(), limited(test.interpreter, test.code), sandboxtest.Echo{})
			if err != nil || outcome.Status != test.status || test.value != "" && (outcome.Value == nil || outcome.Value.Text != test.value) {
				t.Errorf("%s, round %d: %s, value %+v, fault %+v, %v", test.code, round, outcome.Status, outcome.Value, outcome.Fault, err)
			}
		}
	}
}

func limited(i sandbox.Interpreter, code string) sandbox.Job {
	job := sandboxtest.Job(i, code)
	job.Limits.CPU, job.Limits.FileSize, job.Limits.Inodes = time.Second, 8<<20, 500
	return job
}

// full makes files until there is no room for more, and tells why, and whether that was at 500.
const full = `import errno
try:
    for i in range(100_000): open(f'/workspace/{i}', 'w').close()
except OSError as e: n = errno.errorcode[e.errno]
n, i == 500`

// TestKilledHostWithWaitingSandboxes kills a process whose sandboxes wait, while more are made.
func TestKilledHostWithWaitingSandboxes(t *testing.T) {
	if state := os.Getenv("SALLYPORT_TEST_WAITING"); state != "" {
		host := newPooledHost(t, state)
		for range 3 {
			_, _ = host.Run(context.Background(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{})
		}
		fmt.Println("waiting")
		for {
			_, _ = host.Run(context.Background(), sandboxtest.Job(sandbox.Python, "while True: pass"), sandboxtest.Echo{})
		}
	}
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 700 * time.Millisecond} {
		state := testutil.ShortDir(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledHostWithWaitingSandboxes$")
		cmd.Env = append(os.Environ(), "SALLYPORT_TEST_WAITING="+state)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && lines.Text() != "waiting" {
		}
		time.Sleep(after)
		names := hostNames(t, state)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		testutil.NoProcesses(t, filepath.Join(state, "host-"))
		host := newPooledHost(t, state)
		if hosts, _ := filepath.Glob(filepath.Join(state, "host-*")); len(hosts) != 1 {
			t.Errorf("state of the killed gateway is still there: %v", hosts)
		}
		closeHost(t, host, state, names)
	}
}
