//go:build linux

package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/sandboxtest"
)

// openShared opens a host whose programs share sandboxes: no unused one ever waits.
func openShared(t *testing.T, interpreters ...sandbox.Interpreter) sharedRunner {
	t.Helper()
	host, _ := openPooled(t, func(o *sandbox.Options) { o.Pool, o.Reuse, o.Parallel = sandbox.Pool{Min: 0, Max: 1}, true, 64 })
	for _, i := range interpreters {
		if err := sandbox.AwaitReuse(t.Context(), host, sandboxtest.Job(i, "")); err != nil {
			t.Fatal(err)
		}
	}
	return sharedRunner{host}
}

// sharedRunner runs all programs without an owner as those of one owner. It waits for the snapshots of their limits, since
// without one a program runs in a sandbox of its own.
type sharedRunner struct{ *sandbox.Host }

func (r sharedRunner) Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error) {
	if job.Owner == "" {
		job.Owner = "alice"
	}
	_ = sandbox.AwaitReuse(ctx, r.Host, job)
	return r.Host.Run(ctx, job, caller)
}

// programs says who is asked and what the answer must be, for a program that finds nothing of an earlier one.
var firstOrLater = map[sandbox.Interpreter]struct{ code, want string }{
	sandbox.Python: {"import os, sys\nprint('out'); print('err', file=sys.stderr)\nfrom servers.test import echo\n(echo(6 * 7), sorted(os.listdir('/tmp')), os.listdir('/workspace'), open('/workspace/x', 'w').write('1'), open('/tmp/x', 'w').write('1'), os.getpid(), os.getuid())", `[42,[],[],1,1,1,65534]`},
	sandbox.Node:   {"import fs from 'node:fs'; console.log('out'); console.error('err'); const seen = [fs.readdirSync('/workspace'), fs.existsSync('/tmp/x'), process.pid, process.getuid()]; fs.writeFileSync('/workspace/x', '1'); fs.writeFileSync('/tmp/x', '1'); export default seen", `[[],false,1,65534]`},
}

// TestReuse: programs of one owner run in one sandbox, and each finds a new file system, process tree and output.
func TestReuse(t *testing.T) {
	host := openShared(t, sandbox.Python, sandbox.Node)
	sandbox.NoSpares(host.Host)
	for interpreter, program := range firstOrLater {
		for n := range 30 {
			if n%2 == 1 {
				sandbox.AwaitWaiting(t, host.Host, ofAlice(interpreter))
			}
			outcome, err := host.Run(t.Context(), sandboxtest.Job(interpreter, program.code), sandboxtest.Echo{})
			if err != nil || outcome.Value == nil || outcome.Value.Text != program.want || outcome.Stdout.Text != "out\n" || outcome.Stderr.Text != "err\n" {
				t.Fatalf("%s: %+v, %v; want %s", interpreter, outcome, err, program.want)
			}
		}
		if n := sandbox.SharedSandboxes(host.Host, interpreter); n != 1 {
			t.Errorf("%s: %d sandboxes, want one", interpreter, n)
		}
	}
	for _, pid := range sandbox.SharedSentries(host.Host) {
		group, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
		if err == nil && !strings.HasSuffix(string(group), " nice 5\n") { // without autogroups there is no such file, or "/autogroup-0 nice 0"
			if enabled, _ := os.ReadFile("/proc/sys/kernel/sched_autogroup_enabled"); string(enabled) == "1\n" {
				t.Errorf("the scheduling group of a shared sandbox is %q, want nice 5", group)
			}
		}
	}
}

// TestOwnersDoNotShare: a sandbox serves one owner, and a program without an owner has one of its own.
func TestOwnersDoNotShare(t *testing.T) {
	host := openShared(t, sandbox.Python)
	for n, owner := range []string{"alice", "bob", "carol", "alice", "bob"} {
		job := sandboxtest.Job(sandbox.Python, "print("+strconv.Itoa(n)+")")
		job.Owner = owner
		if outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.OK {
			t.Fatalf("%+v, %v", outcome, err)
		}
	}
	if n := sandbox.SharedSandboxes(host.Host, sandbox.Python); n != 3 {
		t.Errorf("%d sandboxes of 3 owners", n)
	}
}

// TestOwnerAfter: a program that changes its owner leaves its sandbox to the new one.
func TestOwnerAfter(t *testing.T) {
	host := openShared(t, sandbox.Python)
	job := sandboxtest.Job(sandbox.Python, "1")
	job.Owner, job.OwnerAfter = "alice", func() string { return "alice with secrets" }
	if outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.OK {
		t.Fatalf("%+v, %v", outcome, err)
	}
	owners := sandbox.SharedOwners(host.Host)
	if len(owners) != 1 || owners[0] != "alice with secrets" {
		t.Errorf("sandboxes of %q", owners)
	}
}

// TestSharedSandboxAfterALimit: a program that was stopped takes its sandbox with it.
func TestSharedSandboxAfterALimit(t *testing.T) {
	host := openShared(t, sandbox.Python, sandbox.Node)
	for interpreter, code := range map[sandbox.Interpreter]string{sandbox.Python: "while True: pass", sandbox.Node: "for (;;);"} {
		job := sandboxtest.Job(interpreter, code)
		job.Limits.Timeout = time.Second
		if outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.TimedOut {
			t.Errorf("%+v, %v", outcome, err)
		}
		if n := sandbox.SharedSandboxes(host.Host, interpreter); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
	}
}

// TestManyShare: many programs at a time, none lost, none with the output of another.
func TestManyShare(t *testing.T) {
	host := openShared(t, sandbox.Python, sandbox.Node)
	var all sync.WaitGroup
	for n := range 32 {
		interpreter, code := sandbox.Python, "print("+strconv.Itoa(n)+")"
		if n%2 == 1 {
			interpreter, code = sandbox.Node, "console.log("+strconv.Itoa(n)+")"
		}
		all.Go(func() {
			outcome, err := host.Run(t.Context(), sandboxtest.Job(interpreter, code), sandboxtest.Echo{})
			if err != nil || outcome.Status != sandbox.OK || outcome.Stdout.Text != strconv.Itoa(n)+"\n" {
				t.Errorf("%d: %+v, %v", n, outcome, err)
			}
		})
	}
	all.Wait()
}

// TestConformanceShared is all of the suite with programs that share sandboxes.
func TestConformanceShared(t *testing.T) {
	sandboxtest.Run(t, openShared(t, sandbox.Python, sandbox.Node))
}

// TestApartShared is TestApart with programs that share sandboxes.
func TestApartShared(t *testing.T) {
	host := openShared(t, sandbox.Python, sandbox.Node)
	t.Run("J01-J02-residue", func(t *testing.T) { sandboxtest.Residue(t, host, sandbox.Python, sandbox.Node) })
	t.Run("J04-nonces", func(t *testing.T) { sandboxtest.Nonces(t, host, 100, 8) })
	t.Run("J05-random", func(t *testing.T) { sandboxtest.Randomness(t, host, 6) })
}

// TestSharedSandboxesAreBounded: the sandboxes of many owners fit into the memory of the pool, and the last used ones stay.
func TestSharedSandboxesAreBounded(t *testing.T) {
	host, _ := openPooled(t, func(o *sandbox.Options) { o.Pool, o.Reuse = sandbox.Pool{Min: 0, Max: 1, Memory: 120 << 20}, true })
	if err := sandbox.AwaitReuse(t.Context(), host, sandboxtest.Job(sandbox.Python, "")); err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		job := sandboxtest.Job(sandbox.Python, "1")
		job.Owner = strconv.Itoa(n)
		if outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.OK {
			t.Fatalf("%+v, %v", outcome, err)
		}
	}
	if owners := sandbox.SharedOwners(host); !slices.Equal(owners, []string{"3", "4", "5"}) {
		t.Errorf("sandboxes of %q are idle", owners)
	}
}
