//go:build linux

package sandbox_test

import (
	"strconv"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestBurst: in a burst of one owner's programs the last unused sandbox is left to the programs of others.
func TestBurst(t *testing.T) {
	host, _ := openPooled(t, func(o *sandbox.Options) { o.Pool, o.Reuse = sandbox.Pool{Min: 1, Max: 2}, true })
	if err := sandbox.AwaitReuse(t.Context(), host, sandboxtest.Job(sandbox.Python, "")); err != nil {
		t.Fatal(err)
	}
	isShared := func(owner string) bool {
		job := sandboxtest.Job(sandbox.Python, `print("SALLYPORT_ZYGOTE" in open("/proc/1/environ").read())`)
		job.Owner = owner
		outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
		shared, parsed := strconv.ParseBool(outcome.Stdout.Text[:max(0, len(outcome.Stdout.Text)-1)])
		if err != nil || parsed != nil {
			t.Fatalf("%+v, %v", outcome, err)
		}
		return shared
	}
	waiting := func() int { n, _ := host.Waiting(sandbox.Python); return n }
	testutil.Eventually(t, "ann has a shared sandbox, and an unused one waits", time.Minute, func() bool { return isShared("ann") && waiting() > 0 })
	for range 5 {
		if !isShared("ann") || waiting() == 0 {
			t.Fatal("a burst of ann takes the last unused sandbox")
		}
	}
	if isShared("bob") {
		t.Error("bob got a shared sandbox, although an unused one waited")
	}
}
