//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/sandbox/bridge"
	"sallyport/sandbox/zygote"
)

// forkEndCPU is the limit of processor time of a program after its result, because such a program is in no queue.
const forkEndCPU = 200 * time.Millisecond

// zygoteRights are what the zygote needs to separate programs; the programs have none of them.
func zygoteRights() *specs.LinuxCapabilities {
	rights := []string{"CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL"}
	return &specs.LinuxCapabilities{Bounding: rights, Effective: rights, Permitted: rights}
}

// zygoteSettings are the settings of zygote.c for sandboxes of a kind.
func zygoteSettings(k kind) string {
	var soft, hard uint64
	for _, limit := range rlimits(k) {
		if limit.Type == "RLIMIT_AS" {
			soft, hard = limit.Soft, limit.Hard
		}
	}
	options := func(m specs.Mount) string { return strings.Join(m.Options[2:], ",") } // without the flags nosuid and nodev
	return fmt.Sprintf("%d %d %d %d %d %d %s %s", nobodyID, k.processes, k.openFiles, k.fileSize, soft, hard, options(scratch("/tmp")), options(workspaceMount(k)))
}

// beginProgram makes a used or new sandbox with a zygote ready for one program: a bridge of its own and a forked process.
// With ahead set, the process waits for a program that is not known yet.
func (b *instance) beginProgram(ahead bool) error {
	z := b.zygote
	b.flushOutput() // what the last program left there goes to the preamble
	if b.bridge != nil {
		if err := b.bridge.Close(); err != nil {
			return err
		}
	}
	var err error
	b.bridge, err = bridge.Listen(filepath.Join(b.sockets(), strconv.Itoa(z.Next())+".sock"), bridge.Options{Logger: b.host.log})
	if err != nil {
		return err
	}
	return z.Fork(ahead)
}

// flushOutput forwards what is in the pipes of the standard streams.
func (b *instance) flushOutput() {
	b.stdout.Flush()
	b.stderr.Flush()
}

// ended is closed when the guest of the current program has ended.
func (b *instance) ended() <-chan struct{} {
	if b.zygote != nil && b.zygote.Current() != nil {
		return b.zygote.Current().Ended()
	}
	return b.process.Done()
}

// exitStatus waits for the end of the guest and returns its exit status.
func (b *instance) exitStatus() (int, error) {
	if b.zygote != nil && b.zygote.Current() != nil {
		if status, err := b.zygote.Current().Status(); err == nil {
			return status, nil
		}
	}
	return b.process.Wait()
}

// zygoteReady waits until the zygote is connected.
func (b *instance) zygoteReady(ctx context.Context) error {
	accepted := make(chan error, 1)
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.Go(func() { accepted <- b.zygote.Accept(ctx) })
	select {
	case err := <-accepted:
		return err
	case <-b.process.Done():
		return zygote.ErrFailed
	}
}
