//go:build linux

package sandbox_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestReuseAttacks is group R: what a program leaves reaches neither the next program in its sandbox nor another owner's.
func TestReuseAttacks(t *testing.T) {
	host := openShared(t, sandbox.Python, sandbox.Node)
	sandbox.NoSpares(host.Host) // the next program would run in the other one
	await := func(tb testing.TB, job sandbox.Job) { tb.Helper(); sandbox.AwaitWaiting(tb, host.Host, job) }
	programs := func(job sandbox.Job) int { return sandbox.SharedPrograms(host.Host, job) }
	for _, attack := range sandboxtest.ReuseAttacks() { // the snapshots of all limits
		if attack.Limit == nil {
			continue
		}
		job := sandboxtest.Job(attack.Interpreter, "")
		attack.Limit(&job.Limits)
		if err := sandbox.AwaitReuse(t.Context(), host.Host, job); err != nil {
			t.Fatal(err)
		}
	}
	sandboxtest.RunReuseAttacks(t, sandboxtest.SharedBed{Runner: host, Programs: programs, Await: await})
}

// TestAttacksShared is TestAttacks with programs that share sandboxes.
func TestAttacksShared(t *testing.T) {
	state := testutil.ShortDir(t)
	r := sandboxtest.NewTestbed(t, state)
	host, _ := hostWith(t, sandbox.Options{State: state, Parallel: 2, Logger: r.Logger(), Pool: sandbox.Pool{Min: 0, Max: 1}, Reuse: true, Snapshots: testutil.Snapshots()})
	r.Runner, r.Waiting = sharedRunner{host}, 32
	for _, i := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		if err := sandbox.AwaitReuse(t.Context(), host, sandboxtest.Job(i, "")); err != nil {
			t.Fatal(err)
		}
	}
	sandboxtest.RunAttacks(t, r)
}

// TestSideBySide: two programs of one owner at the same time are in two sandboxes.
func TestSideBySide(t *testing.T) {
	host := openShared(t, sandbox.Python)
	const code = `import os, time, socket
s = socket.socket(socket.AF_UNIX); s.bind("\0side"); t = socket.socket(); t.bind(("127.0.0.1", 4321)); open("/tmp/x", "x")
if os.fork() == 0: time.sleep(60)
time.sleep(1.5)
print(len([p for p in os.listdir("/proc") if p.isdigit()]), os.listdir("/tmp"))`
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, code), sandboxtest.Echo{})
			if err != nil || outcome.Stdout.Text != "2 ['x']\n" {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
	both.Wait()
	if n := sandbox.SharedSandboxes(host.Host, sandbox.Python); n != 2 {
		t.Errorf("%d sandboxes, want 2", n)
	}
}

// TestRandomShared: programs that one zygote forked draw different numbers, though they share its memory; also when their
// processes waited for them.
func TestRandomShared(t *testing.T) {
	host := openShared(t, sandbox.Python, sandbox.Node)
	sandbox.NoSpares(host.Host)
	for interpreter, code := range sandboxtest.ForkedRandom {
		seen := map[string]bool{}
		for n := range 6 {
			if n%2 == 1 {
				sandbox.AwaitWaiting(t, host.Host, ofAlice(interpreter))
			}
			outcome, err := host.Run(t.Context(), sandboxtest.Job(interpreter, code), sandboxtest.Echo{})
			if err != nil || outcome.Status != sandbox.OK || strings.Count(outcome.Stdout.Text, "\n") < 12 {
				t.Fatalf("%s: %+v, %v", interpreter, outcome, err)
			}
			for line := range strings.Lines(outcome.Stdout.Text) {
				if seen[line] {
					t.Errorf("%s: two programs have drawn %s", interpreter, line)
				}
				seen[line] = true
			}
		}
		if n := sandbox.SharedSandboxes(host.Host, interpreter); n != 1 {
			t.Errorf("%s: %d sandboxes, want one", interpreter, n)
		}
	}
}

// TestEndOfASharedSandbox: a host that closes does not wait for a program that goes on after its end.
func TestEndOfASharedSandbox(t *testing.T) {
	host := openShared(t, sandbox.Python)
	if outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, sandboxtest.GoesOn), sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.OK {
		t.Fatalf("%+v, %v", outcome, err)
	}
	closed := make(chan error, 1)
	go func() { closed <- host.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the host does not close")
	}
}
