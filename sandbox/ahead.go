//go:build linux

package sandbox

import (
	"errors"
	"runtime"
	"time"
)

// A process takes longer to fork and to connect than a small program takes to run. So the process of the next program is
// forked as soon as no process of the last one is left, and waits. While a process waits in a sandbox, no program runs in
// it. An owner gets a second sandbox if programs follow each other faster than that; they alternate.

// spareAfter is how many programs of a burst must have waited for a process before the owner gets a second sandbox.
const spareAfter = 4

// errWaiting is why a sandbox is not used again.
var errWaiting = errors.New("the process that waited for a program has ended")

// forkAhead forks the process of the next program, if the sandbox is idle and a processor is free.
func (r *reuse) forkAhead(b *instance) {
	for n := 0; n < 10 && b.checkReuse() != nil; n++ { // the memory of the last program is free soon
		time.Sleep(memoryPoll)
	}
	forked, err := r.tryForkAhead(b)
	if err != nil {
		r.retire(b, err)
	}
	if forked {
		r.watchWaiting(b)
	}
}

func (r *reuse) tryForkAhead(b *instance) (forked bool, err error) {
	b.begin.Lock()
	defer b.begin.Unlock()
	idle := false
	r.idle.Each(func(_ reuseKey, other *instance) { idle = idle || other == b })
	if !idle || b.ctx.Err() != nil || !r.processorFree() {
		return false, nil
	}
	if err := b.checkReuse(); err != nil {
		b.stop(err) // before a program takes it
		return false, err
	}
	if err := b.beginProgram(true); err != nil {
		b.stop(err)
		return false, err
	}
	return true, nil
}

// processorFree reports whether fewer programs run than there are processors.
func (r *reuse) processorFree() bool { return len(r.host.slots) < runtime.GOMAXPROCS(0) }

// watchWaiting retires a sandbox if its process ends while it waits for a program.
func (r *reuse) watchWaiting(b *instance) {
	b.begin.Lock()
	link, waiting := b.bridge, b.zygote.Current()
	b.begin.Unlock()
	if link.Wait(b.ctx) == nil {
		b.zygote.MarkReady(waiting)
	}
	select {
	case <-waiting.Ended():
	case <-b.ctx.Done():
	}
	b.begin.Lock()
	lost := b.ctx.Err() == nil && b.zygote.Claim(waiting) // otherwise it has run a program
	if lost {
		b.stop(errWaiting) // before a program takes it
	}
	b.begin.Unlock()
	if lost {
		r.retire(b, errWaiting)
	}
}

// claim takes the process that waits for a program.
func (b *instance) claim() error {
	if err := b.checkReuse(); err != nil {
		return err
	}
	if !b.zygote.Claim(b.zygote.Current()) {
		return errWaiting
	}
	b.flushOutput()
	return nil
}

// noteLate counts a program that found no process that waited. It starts a second sandbox for the owner if such programs
// follow each other, no other program runs, and the memory of the pool suffices.
func (r *reuse) noteLate(key reuseKey) {
	n, total := r.idle.Count(key)
	fits := n == 0 && len(r.host.slots) == 1 && r.processorFree() && total+2 <= r.room()
	r.mu.Lock()
	defer r.mu.Unlock()
	use := r.used[key]
	use.late++
	r.used[key] = use
	if !fits || r.sparing || use.late < spareAfter {
		return
	}
	r.sparing = true
	r.host.cleanups.Go(func() { r.addSpare(key) })
}

// addSpare starts a sandbox with a process that waits for a program of the owner.
func (r *reuse) addSpare(key reuseKey) {
	b := r.start(r.host.ctx, key.kind, true)
	kept := b != nil && r.keep(b, key)
	r.mu.Lock()
	r.sparing = false
	r.mu.Unlock()
	if kept {
		r.watchWaiting(b)
	}
}
