package remote_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/sandboxtest"
)

// labelingCaller is a caller whose results have data of another owner.
type labelingCaller struct {
	sandboxtest.Echo
	owner *atomic.Value
}

func (l labelingCaller) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	l.owner.Store("alice private")
	return l.Echo.Call(ctx, call)
}

// TestOwner: programs of one owner share a worker's sandbox, until one gets data that makes it another owner's.
func TestOwner(t *testing.T) {
	m := newMachine(t)
	c, err := remote.New(m.dial, &remote.Options{Version: "v1", Guest: runtime.Guest(), Pool: sandbox.Pool{Max: 1}, Reuse: true, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		m.work.Wait()
	}()
	if err := c.Publish(sandboxtest.Tree()); err != nil {
		t.Fatal(err)
	}
	var owner atomic.Value
	// Each program of a shared sandbox has namespaces of its own, with numbers that count up in the sandbox; 0 is no shared one.
	run := func(as, more string) (number int) {
		owner.Store(as)
		job := sandboxtest.Job(sandbox.Python, more+"import os\n'SALLYPORT_ZYGOTE' in open('/proc/1/environ').read() and int(os.readlink('/proc/self/ns/ipc').strip('ipc:[]'))")
		job.Owner, job.OwnerAfter = as, func() string { return owner.Load().(string) }
		o, err := c.Run(t.Context(), job, labelingCaller{owner: &owner})
		if err != nil || o.Value == nil {
			t.Fatalf("%+v, %v", o, err)
		}
		number, _ = strconv.Atoi(o.Value.Text)
		return number
	}
	first := 0
	testutil.Eventually(t, "a sandbox is shared", time.Minute, func() bool { first = run("alice", ""); return first != 0 })
	second := run("alice", "")
	third := run("alice", "from servers.test import echo\necho(1)\n")
	if second <= first || third <= second {
		t.Fatalf("programs of one owner do not share a sandbox: %d, %d, %d", first, second, third)
	}
	if after := run("alice", ""); after > first {
		t.Error("a program shares a sandbox with one that has read other data")
	}
	private := 0 // an unused sandbox comes first
	testutil.Eventually(t, "the new owner shares a sandbox", time.Minute, func() bool { private = run("alice private", ""); return private != 0 })
	if private <= third {
		t.Errorf("the sandbox is not that of its new owner: %d after %d", private, third)
	}
	if bob := run("bob", ""); bob > first {
		t.Error("bob shares alice's sandbox")
	}
}
