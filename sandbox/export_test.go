//go:build linux

package sandbox

import "context"

// AwaitReuse waits until programs of the job's owner can share a sandbox, and returns why they cannot.
func AwaitReuse(ctx context.Context, h *Host, job Job) error {
	k := forkKind(kindOf(job))
	h.snapshots.wait(ctx, k)
	return h.snapshots.ensure(k).err
}
