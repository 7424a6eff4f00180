//go:build linux

package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

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
	h.reuse.mu.Lock()
	defer h.reuse.mu.Unlock()
	for key, idle := range h.reuse.idle {
		if key.kind.interpreter == i {
			n += len(idle)
		}
	}
	return n
}

// SharedSentries returns the process IDs of the sentries of the idle sandboxes that have run programs.
func SharedSentries(h *Host) (pids []int) {
	h.reuse.mu.Lock()
	defer h.reuse.mu.Unlock()
	for _, idle := range h.reuse.idle {
		for _, b := range idle {
			pids = append(pids, b.process.Sentry())
		}
	}
	return pids
}

// SharedOwners returns the owners of the idle sandboxes that have run programs.
func SharedOwners(h *Host) (owners []string) {
	h.reuse.mu.Lock()
	defer h.reuse.mu.Unlock()
	for key := range h.reuse.idle {
		owners = append(owners, key.owner)
	}
	slices.Sort(owners)
	return owners
}

// SharedPrograms returns how many programs the idle sandboxes have run that can run this one.
func SharedPrograms(h *Host, job Job) (n int) {
	h.reuse.mu.Lock()
	defer h.reuse.mu.Unlock()
	for _, b := range h.reuse.idle[h.reuse.keyOf(job, job.Owner)] {
		n += b.zygote.Programs()
	}
	return n
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
