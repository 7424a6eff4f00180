//go:build linux

package sandbox_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// gate answers when it is opened, and counts who waits at it.
type gate struct {
	waiting atomic.Int64
	open    chan struct{}
}

// Call is one call.
func (g *gate) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	g.waiting.Add(1)
	select {
	case <-g.open:
	case <-ctx.Done():
	}
	return tool.Result{Structured: []byte("1")}, nil
}

// TestQueue: 5,000 programs of one client wait without a sandbox, leave when their client does, and keep nobody out (C16).
func TestQueue(t *testing.T) {
	host, _ := newHost(t)
	g := &gate{open: make(chan struct{})}
	var running, queued sync.WaitGroup
	for range 4 {
		running.Go(func() {
			outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "from sallyport import call\ncall('test.gate')"), g)
			if err != nil || outcome.Status != sandbox.OK {
				t.Errorf("a program that runs: %+v, %v", outcome, err)
			}
		})
	}
	testutil.Eventually(t, "four programs run", 30*time.Second, func() bool { return g.waiting.Load() == 4 })
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	for range 5000 {
		queued.Go(func() {
			outcome, err := host.Run(ctx, sandboxtest.Job(sandbox.Python, "from sallyport import call\ncall('test.gate')"), g)
			if err != nil || outcome.Status != sandbox.Canceled {
				t.Errorf("a program that waits: %+v, %v", outcome, err)
			}
		})
	}
	testutil.Eventually(t, "all of them wait", 30*time.Second, func() bool { return runtime.NumGoroutine() >= before+5000 })
	if n := g.waiting.Load(); n != 4 {
		t.Errorf("%d programs run at once, allowed are 4", n)
	}
	cancel()
	queued.Wait()
	close(g.open)
	running.Wait()
	outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "6 * 7"), sandboxtest.Echo{})
	if err != nil || outcome.Status != sandbox.OK {
		t.Errorf("another client's program: %+v, %v", outcome, err)
	}
}

// askingCaller pauses the clock until it is opened.
type askingCaller struct{ gate }

// Call is one call.
func (a *askingCaller) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	defer tool.Pause(ctx)()
	return a.gate.Call(ctx, call)
}

// TestPlaceOfWhoWaits: programs that wait for a person keep nobody out, and lose no time.
func TestPlaceOfWhoWaits(t *testing.T) {
	host, _ := newHost(t)
	a := &askingCaller{gate{open: make(chan struct{})}}
	var waiting sync.WaitGroup
	for range 5 { // one more than may run at once
		waiting.Go(func() {
			job := sandboxtest.Job(sandbox.Python, "from sallyport import call\ncall('test.person')")
			job.Limits.Timeout = 3 * time.Second
			if outcome, err := host.Run(t.Context(), job, a); err != nil || outcome.Status != sandbox.OK {
				t.Errorf("a program that waited: %+v, %v", outcome, err)
			}
		})
	}
	testutil.Eventually(t, "five programs wait", 30*time.Second, func() bool { return a.waiting.Load() == 5 })
	outcome, err := host.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), a)
	if err != nil || outcome.Status != sandbox.OK {
		t.Errorf("another program: %+v, %v", outcome, err)
	}
	close(a.open)
	waiting.Wait()
}
