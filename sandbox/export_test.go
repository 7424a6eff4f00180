//go:build linux

package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/sandbox/bridge"
)

// AwaitReuse waits until programs of the job's owner can share a sandbox, and returns why they cannot.
func AwaitReuse(ctx context.Context, h *Host, job Job) error {
	k := forkKind(kindOf(job))
	h.snapshots.wait(ctx, k)
	return h.snapshots.ensure(k).err
}

// SharedSandboxes returns how many idle sandboxes have run programs of an interpreter.
func SharedSandboxes(h *Host, i Interpreter) (n int) {
	h.reuse.idle.Each(func(key reuseKey, _ *instance) {
		if key.kind.interpreter == i {
			n++
		}
	})
	return n
}

// SharedSentries returns the process IDs of the sentries of the idle sandboxes that have run programs.
func SharedSentries(h *Host) (pids []int) {
	h.reuse.idle.Each(func(_ reuseKey, b *instance) { pids = append(pids, b.process.Sentry()) })
	return pids
}

// SharedOwners returns the owners of the idle sandboxes that have run programs.
func SharedOwners(h *Host) (owners []string) {
	h.reuse.idle.Each(func(key reuseKey, _ *instance) { owners = append(owners, key.owner) })
	slices.Sort(owners)
	return slices.Compact(owners)
}

// SharedPrograms returns how many programs the idle sandboxes have run that can run this one.
func SharedPrograms(h *Host, job Job) (n int) {
	h.reuse.idle.Each(func(key reuseKey, b *instance) {
		if key == h.reuse.keyOf(job, job.Owner) {
			n += b.zygote.Programs()
		}
	})
	return n
}

// AwaitWaiting waits until a process waits for this program in an idle sandbox, or there is no such sandbox.
func AwaitWaiting(tb testing.TB, h *Host, job Job) {
	tb.Helper()
	testutil.Eventually(tb, "a process waits for a program", time.Minute, func() bool {
		found, ready := false, false
		h.reuse.idle.Each(func(key reuseKey, b *instance) {
			if key == h.reuse.keyOf(job, job.Owner) {
				found, ready = true, ready || b.zygote.Rank() == 3
			}
		})
		return ready || !found
	})
}

// EndWaiting ends the processes that wait for programs.
func EndWaiting(h *Host) error {
	var waiting []*instance
	h.reuse.idle.Each(func(_ reuseKey, b *instance) {
		if b.zygote.Waits() {
			waiting = append(waiting, b)
		}
	})
	var err error
	for _, b := range waiting {
		b.begin.Lock()
		err = errors.Join(err, b.bridge.Close())
		b.begin.Unlock()
	}
	return err
}

// NoSpares makes a host that starts no second sandbox for an owner because of its haste.
func NoSpares(h *Host) {
	h.reuse.mu.Lock()
	defer h.reuse.mu.Unlock()
	h.reuse.sparing = true
}

// RunOnSlowMachine runs a program in a sandbox of its own while this process has no time for it: its begin is noticed after
// the sandbox's processes have ended.
func RunOnSlowMachine(ctx context.Context, h *Host, job Job) (bridge.Report, error) {
	b, err := h.openReady(ctx, kindOf(job), job.ID, "")
	if err != nil {
		return bridge.Report{}, err
	}
	e := &execution{instance: b, job: job}
	e.ctx, e.stop = context.WithCancelCause(b.ctx)
	var watcher sync.WaitGroup
	watcher.Go(e.watchProcess)
	report, err := b.bridge.Run(e.ctx, bridge.Program{Code: job.Code, ValueLimit: 100}, e.account(nil, nil), func() {
		<-b.ended()
		time.Sleep(200 * time.Millisecond) // a host that gives up gives up in this time
	})
	e.stop(nil)
	watcher.Wait()
	return report, errors.Join(err, b.close())
}
