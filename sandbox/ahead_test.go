//go:build linux

package sandbox_test

import (
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// ofAlice is a program of the owner that sharedRunner gives to programs without one.
func ofAlice(i sandbox.Interpreter) sandbox.Job {
	job := sandboxtest.Job(i, "")
	job.Owner = "alice"
	return job
}

// runsNumber runs a program that must print a number.
func runsNumber(t *testing.T, host sharedRunner, i sandbox.Interpreter, n int) {
	t.Helper()
	code := map[sandbox.Interpreter]string{sandbox.Python: "print(" + strconv.Itoa(n) + ")", sandbox.Node: "console.log(" + strconv.Itoa(n) + ")"}[i]
	outcome, err := host.Run(t.Context(), sandboxtest.Job(i, code), sandboxtest.Echo{})
	if err != nil || outcome.Status != sandbox.OK || outcome.Stdout.Text != strconv.Itoa(n)+"\n" {
		t.Fatalf("%+v, %v; want %d", outcome, err, n)
	}
}

// TestWaitingProcessEnds: a sandbox is not used again if its process ends while it waits for a program, and the next program
// does not notice.
func TestWaitingProcessEnds(t *testing.T) {
	for _, i := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		host := openShared(t, i)
		runsNumber(t, host, i, 1)
		sandbox.AwaitWaiting(t, host.Host, ofAlice(i))
		before := sandbox.SharedSentries(host.Host)
		if err := sandbox.EndWaiting(host.Host); err != nil {
			t.Fatal(err)
		}
		runsNumber(t, host, i, 2) // perhaps before the end is noticed
		testutil.Eventually(t, "the sandbox is gone", time.Minute, func() bool {
			return !slices.Contains(sandbox.SharedSentries(host.Host), before[0])
		})
		runsNumber(t, host, i, 3)
	}
}

// TestSpareSandbox: an owner gets a second sandbox, and not a third one, if programs follow each other without a pause.
func TestSpareSandbox(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("there is no processor that could fork a process while a program runs")
	}
	host := openShared(t, sandbox.Python, sandbox.Node)
	for _, i := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
		for end := time.Now().Add(2 * time.Minute); sandbox.SharedSandboxes(host.Host, i) < 2; { // a pause would give a process time to wait
			if runsNumber(t, host, i, 1); time.Now().After(end) {
				t.Fatalf("%s: there is no second sandbox", i)
			}
		}
		for n := range 40 {
			runsNumber(t, host, i, n)
		}
		if n := sandbox.SharedSandboxes(host.Host, i); n > 2 {
			t.Errorf("%s: %d sandboxes", i, n)
		}
	}
}

// TestSpareSandboxNeedsMemory: there is no second sandbox without room for it.
func TestSpareSandboxNeedsMemory(t *testing.T) {
	host, _ := openPooled(t, func(o *sandbox.Options) { o.Pool, o.Reuse = sandbox.Pool{Min: 0, Max: 1, Memory: 40 << 20}, true })
	shared := sharedRunner{host}
	for n := range 30 {
		runsNumber(t, shared, sandbox.Python, n)
		if n := sandbox.SharedSandboxes(host, sandbox.Python); n > 1 {
			t.Fatalf("%d sandboxes", n)
		}
	}
}
