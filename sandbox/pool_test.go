//go:build linux

package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// openPooled opens a host with a pool.
func openPooled(t *testing.T, change func(o *sandbox.Options)) (*sandbox.Host, string) {
	t.Helper()
	options := sandbox.Options{
		DebugLog: os.Getenv("SALLYPORT_RUNSC_LOG"), Pool: sandbox.Pool{Min: 1, Max: 2}, Snapshots: testutil.Snapshots(),
	}
	if change != nil {
		change(&options)
	}
	return hostWith(t, options)
}

const waitLimit = 20 * time.Second

// awaitFull waits until as many sandboxes wait as should.
func awaitFull(t *testing.T, host *sandbox.Host, i sandbox.Interpreter) {
	t.Helper()
	testutil.Eventually(t, "a sandbox waits", waitLimit, func() bool {
		n, full := host.Waiting(i)
		return full && n > 0
	})
}

func warm(t *testing.T, host *sandbox.Host, interpreters ...sandbox.Interpreter) {
	t.Helper()
	for _, i := range interpreters {
		host.Warm(sandboxtest.Job(i, ""))
	}
	for _, i := range interpreters {
		awaitFull(t, host, i)
	}
}

// runValue runs a program that must end well and returns its value.
func runValue(t *testing.T, host *sandbox.Host, job sandbox.Job) string {
	t.Helper()
	outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
	if err != nil || outcome.Status != sandbox.OK || outcome.Value == nil {
		t.Fatalf("%+v, %v", outcome, err)
	}
	return outcome.Value.Text
}

// TestPool: sandboxes wait, are used once, and the next ones wait.
func TestPool(t *testing.T) {
	host, state := openPooled(t, nil)
	warm(t, host, sandbox.Python, sandbox.Node)
	for range 2 {
		for interpreter, code := range map[sandbox.Interpreter]string{
			sandbox.Python: "import os, sys\nprint('out'); print('err', file=sys.stderr)\nfrom servers.test import echo\n(echo(6 * 7), sorted(os.listdir('/tmp')), os.listdir('/workspace'), open('/workspace/x', 'w').write('1'), open('/tmp/x', 'w').write('1'))",
			sandbox.Node:   "import fs from 'node:fs'; console.log('out'); console.error('err'); const seen = [fs.readdirSync('/workspace')]; fs.writeFileSync('/workspace/x', '1'); export default seen",
		} {
			awaitFull(t, host, interpreter)
			before, _ := filepath.Glob(filepath.Join(state, "host-*", "w-*"))
			job := sandboxtest.Job(interpreter, code)
			outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
			want := map[sandbox.Interpreter]string{sandbox.Python: `[42,[],[],1,1]`, sandbox.Node: `[[]]`}[interpreter]
			if err != nil || outcome.Value == nil || outcome.Value.Text != want || outcome.Stdout.Text != "out\n" || outcome.Stderr.Text != "err\n" {
				t.Errorf("%s: %+v, %v; want %s", interpreter, outcome, err, want)
			}
			if cold, _ := filepath.Glob(filepath.Join(state, "host-*", job.ID)); len(cold) > 0 || len(before) == 0 {
				t.Errorf("the program ran in a sandbox of its own: %v; %v waited", cold, before)
			}
		}
	}
}

// TestSnapshotsAreKept: another host restores what the first one made, a damaged one is made anew, and what changes what goes in makes another.
func TestSnapshotsAreKept(t *testing.T) {
	dir := filepath.Join(testutil.ShortDir(t), "snapshots")
	use := func(change func(o *sandbox.Options)) []string {
		t.Helper()
		host, _ := openPooled(t, func(o *sandbox.Options) {
			o.Snapshots = dir
			if change != nil {
				change(o)
			}
		})
		warm(t, host, sandbox.Python)
		if got := runValue(t, host, sandboxtest.Job(sandbox.Python, "6 * 7")); got != "42" {
			t.Errorf("value %s", got)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		return names
	}
	first := use(nil)
	if len(first) != 1 {
		t.Fatalf("snapshots %v, want one", first)
	}
	pages := filepath.Join(first[0], "pages.img")
	made := modTime(t, pages)
	if again := use(nil); len(again) != 1 || !modTime(t, pages).Equal(made) {
		t.Errorf("the snapshot was made again: %v", again)
	}
	if err := os.WriteFile(pages, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := use(nil); len(again) != 1 || modTime(t, pages).Equal(made) {
		t.Errorf("a damaged snapshot was used: %v", again)
	}
	other := func(o *sandbox.Options) { o.Guest = changedFS{runtime.Guest()} }
	if both := use(other); len(both) != 2 {
		t.Errorf("another guest has the same snapshot: %v", both)
	}
}

func modTime(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// TestSnapshotThatDoesNotRestore is one that is whole, and of no use.
func TestSnapshotThatDoesNotRestore(t *testing.T) {
	runsc := filepath.Join(testutil.ShortDir(t), "runsc")
	script := "#!/bin/sh\nfor a in \"$@\"; do if [ \"$a\" = restore ]; then echo 'no way' >&2; exit 128; fi; done\nexec '" + testutil.Runsc(t) + "' \"$@\"\n"
	testutil.WriteProgram(t, runsc, script)
	host, _ := openPooled(t, func(o *sandbox.Options) { o.Runsc = runsc })
	for range 2 {
		if got := runValue(t, host, sandboxtest.Job(sandbox.Python, "6 * 7")); got != "42" {
			t.Errorf("value %s", got)
		}
	}
}

// TestASandboxThatDiesWhileItWaits is not handed out.
func TestASandboxThatDiesWhileItWaits(t *testing.T) {
	host, state := openPooled(t, nil)
	warm(t, host, sandbox.Python)
	for _, pid := range waitingPIDs(t, state) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if got := runValue(t, host, sandboxtest.Job(sandbox.Python, "6 * 7")); got != "42" {
		t.Errorf("value %s", got)
	}
	awaitFull(t, host, sandbox.Python)
	if got := runValue(t, host, sandboxtest.Job(sandbox.Python, "6 * 7")); got != "42" {
		t.Errorf("value %s", got)
	}
}

func waitingPIDs(t *testing.T, state string) []int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "host-*", "w-*", "sentry.pid"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sandbox waits: %v", err)
	}
	var pids []int
	for _, file := range files {
		pids = append(pids, readPID(file))
	}
	return pids
}

// TestPublishReachesThePool: a program sees what was published before it started, also in a sandbox that has waited.
func TestPublishReachesThePool(t *testing.T) {
	host, state := openPooled(t, nil)
	for i := range 3 {
		warm(t, host, sandbox.Python)
		tree := sandboxtest.Tree()
		tree["test/version.py"] = fmt.Appendf(nil, "VERSION = %d\n", i)
		if err := host.Publish(tree); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			awaitFull(t, host, sandbox.Python)
		}
		if got := runValue(t, host, sandboxtest.Job(sandbox.Python, "from servers.test.version import VERSION\nVERSION")); got != fmt.Sprint(i) {
			t.Errorf("version %s, want %d", got, i)
		}
	}
	awaitFull(t, host, sandbox.Python)
	testutil.Eventually(t, "old trees are gone", waitLimit, func() bool {
		trees, _ := filepath.Glob(filepath.Join(state, "host-*", "servers-*"))
		return len(trees) == 1
	})
}

// TestClonesDiffer is J05: what is random is so in each sandbox that was restored from the same snapshot.
func TestClonesDiffer(t *testing.T) {
	host, _ := openPooled(t, nil)
	warm(t, host, sandbox.Python, sandbox.Node)
	seen := map[string]string{}
	for i := range 4 {
		for interpreter, code := range map[sandbox.Interpreter]string{
			sandbox.Python: "import random, secrets, uuid, tempfile, os\n[random.random(), secrets.token_hex(), str(uuid.uuid4()), str(uuid.uuid1()), tempfile.mktemp(), os.urandom(8).hex(), random.SystemRandom().random()]",
			sandbox.Node:   "import crypto from 'node:crypto'; export default [Math.random(), crypto.randomUUID(), crypto.randomBytes(8).toString('hex'), crypto.webcrypto.getRandomValues(new Uint32Array(2)).join(), crypto.randomInt(2 ** 40), globalThis.crypto.randomUUID()]",
		} {
			awaitFull(t, host, interpreter)
			for part := range strings.SplitSeq(strings.Trim(runValue(t, host, sandboxtest.Job(interpreter, code)), "[]"), ",") {
				if before, again := seen[part]; again {
					t.Errorf("%s of run %d was there in %s already", part, i, before)
				}
				seen[part] = fmt.Sprint(interpreter, i)
			}
		}
	}
}

// TestSessions: what a program of a session leaves in memory and in /workspace, the next one finds, and nobody else.
func TestSessions(t *testing.T) {
	host, _ := openPooled(t, nil)
	session := func(name string, i sandbox.Interpreter, code string) sandbox.Job {
		job := sandboxtest.Job(i, code)
		job.Session = name
		return job
	}
	for _, step := range []struct {
		job    sandbox.Job
		value  string
		reused bool
	}{
		{session("ada one", sandbox.Python, "x = 41\nopen('/workspace/f', 'w').write('1')\nx"), "41", false},
		{session("ada one", sandbox.Python, "import os\nx += 1\n(x, os.listdir('/workspace'))"), `[42,["f"]]`, true},
		{session("bob one", sandbox.Python, "import os\n('x' in globals(), os.listdir('/workspace'))"), "[false,[]]", false},
		{session("ada one", sandbox.Node, "globalThis.y = 1; export default y"), "1", false},
		{session("ada one", sandbox.Node, "y++; export default y"), "2", true},
		{sandboxtest.Job(sandbox.Python, "'x' in globals()"), "false", false},
		{session("ada one", sandbox.Python, "x"), "42", true},
	} {
		outcome, err := host.Run(t.Context(), step.job, sandboxtest.Echo{})
		if err != nil || outcome.Value == nil || outcome.Value.Text != step.value || outcome.Reused != step.reused {
			t.Errorf("%q: %+v, %v; want %s", step.job.Code, outcome, err, step.value)
		}
	}
	fails := session("ada one", sandbox.Python, "x = 7\n1/0")
	if outcome, err := host.Run(t.Context(), fails, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.Failed || outcome.Fault.Lines[0].Line != 2 {
		t.Errorf("%+v, %v", outcome, err)
	}
	if got := runValue(t, host, session("ada one", sandbox.Python, "x")); got != "7" {
		t.Errorf("after a fault x is %s", got)
	}
	slow := session("ada one", sandbox.Python, "while True: pass")
	slow.Limits.Timeout = 300 * time.Millisecond
	if outcome, err := host.Run(t.Context(), slow, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.TimedOut {
		t.Errorf("%+v, %v", outcome, err)
	}
	if got := runValue(t, host, session("ada one", sandbox.Python, "'x' in globals()")); got != "false" {
		t.Error("an interpreter that was stopped goes on")
	}
}

// TestProgramsOfASessionTakeTurns: two at once do not mix.
func TestProgramsOfASessionTakeTurns(t *testing.T) {
	host, _ := openPooled(t, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			job := sandboxtest.Job(sandbox.Python, "import time\nn = globals().get('n', 0)\ntime.sleep(0.1)\nn += 1\nn")
			job.Session = "s"
			if outcome, err := host.Run(context.Background(), job, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.OK {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
	all.Wait()
	job := sandboxtest.Job(sandbox.Python, "n")
	job.Session = "s"
	if got := runValue(t, host, job); got != "4" {
		t.Errorf("n is %s after four programs", got)
	}
}

// TestIdleSessionsEnd: their sandboxes go, and the next program begins anew.
func TestIdleSessionsEnd(t *testing.T) {
	host, state := openPooled(t, func(o *sandbox.Options) { o.SessionIdle = 200 * time.Millisecond; o.Pool = sandbox.Pool{} })
	job := sandboxtest.Job(sandbox.Python, "x = 1\nx")
	job.Session = "s"
	runValue(t, host, job)
	testutil.Eventually(t, "the session's sandbox is gone", waitLimit, func() bool {
		left, _ := filepath.Glob(filepath.Join(state, "host-*", "case-*"))
		return len(left) == 0 && len(testutil.Processes(state)) == 0
	})
	job = sandboxtest.Job(sandbox.Python, "'x' in globals()")
	job.Session = "s"
	if got := runValue(t, host, job); got != "false" {
		t.Error("the session goes on")
	}
}

// TestForksOfAWarmInterpreter is C02 where much is loaded: forks meet their own limit before that of memory.
func TestForksOfAWarmInterpreter(t *testing.T) {
	host, _ := openPooled(t, nil)
	warm(t, host, sandbox.Python)
	outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "import os\nwhile True: os.fork()"), sandboxtest.Echo{})
	if err != nil || outcome.Status != sandbox.Failed || outcome.Fault.Type != "BlockingIOError" {
		t.Errorf("%+v, %v", outcome, err)
	}
}
