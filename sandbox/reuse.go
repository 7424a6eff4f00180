//go:build linux

package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/sandbox/zygote"
)

const (
	// reusePrograms is how many programs one sandbox runs, each in a process of its own.
	reusePrograms = 500
	// reuseAge is how long a sandbox is used, reuseIdle how long it waits for the next program of its owner.
	reuseAge  = 10 * time.Minute
	reuseIdle = 30 * time.Second
	// reuseGrowth is the memory in bytes that may be in use beyond that of a new sandbox before the next program.
	reuseGrowth = 64 << 20
	// burstGap is the longest time between the programs of a burst of one owner. It is shorter than a refill, so that an
	// owner with few programs gets unused sandboxes also during a burst of another.
	burstGap = 300 * time.Millisecond
	// reuseNice and reuseGroupNice give programs that have a sandbox of their own, which are lone ones, priority over a burst
	// for the CPU: among processes of one scheduling group, and among groups.
	reuseNice, reuseGroupNice = 5, 5
)

// reuseKey identifies the programs that may run in the same sandbox.
type reuseKey struct {
	kind  kind
	owner string
}

// reuse keeps sandboxes that have run programs of one owner, for more programs of that owner. Each program runs in a
// process tree of its own, which the zygote of the sandbox forked, with its own file systems, limits and namespaces.
type reuse struct {
	host *Host

	mu         sync.Mutex
	idle       map[reuseKey][]*instance // the last used one comes last
	usedAt     map[reuseKey]time.Time   // when an owner's program last began or ended in a shared sandbox
	retryAfter map[kind]time.Time       // of kinds that could not start
}

// allows reports whether programs of a job may share a sandbox with others of the same owner.
func (r *reuse) allows(job Job) bool {
	if job.Owner == "" || !r.host.opts.Reuse || r.host.pool.limits.Max == 0 || job.needsThreads() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().After(r.retryAfter[forkKind(kindOf(job))])
}

// needsThreads reports whether the program uses worker threads of node, which a forked process does not have.
func (j Job) needsThreads() bool {
	return j.Interpreter == Node && strings.Contains(j.Code, "worker_threads")
}

func forkKind(k kind) kind {
	k.forks = true
	return k
}

func (r *reuse) keyOf(job Job, owner string) reuseKey { return reuseKey{forkKind(kindOf(job)), owner} }

// get returns a sandbox that has forked a process for the job's program, an idle one or a new one. It returns nil if there
// is none and a new one cannot be restored from a snapshot.
func (r *reuse) get(ctx context.Context, job Job) (b *instance, waited bool) {
	key := r.keyOf(job, job.Owner)
	r.noteUse(key)
	for b := r.take(key); b != nil; b = r.take(key) {
		err := b.useAgain(ctx)
		if err == nil {
			return b, true
		}
		r.host.log.Debug("sandbox is not used again", "sandbox", b.id, "reason", err)
		b.discard()
	}
	return r.start(ctx, key.kind), false
}

func (r *reuse) noteUse(key reuseKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usedAt[key] = time.Now()
}

// useAgain forks the process of the next program, or returns why the sandbox must not run another one.
func (b *instance) useAgain(ctx context.Context) error {
	if err := b.zygote.Settle(ctx); err != nil {
		return err
	}
	if err := b.checkReuse(); err != nil { // the memory of the last program is free by now
		return err
	}
	return b.beginProgram(ctx)
}

// start starts a sandbox with a zygote and its first program. It returns nil while the snapshot is being made, and after a
// failure, which is logged. A failed start is repeated after startRetryDelay.
func (r *reuse) start(ctx context.Context, k kind) *instance {
	image, err := r.host.snapshots.made(k)
	if image == "" && err == nil {
		return nil
	}
	var b *instance
	if err == nil {
		b, err = r.restore(ctx, k, image)
	}
	if err != nil && ctx.Err() == nil && r.host.ctx.Err() == nil {
		r.host.log.Warn("sandbox for several programs", "kind", k.String(), "error", err)
		r.host.snapshots.invalidate(k, image)
		r.mu.Lock()
		r.retryAfter[k] = time.Now().Add(startRetryDelay)
		r.mu.Unlock()
	}
	return b
}

// restore restores a sandbox with a zygote from an image, and forks the process of its first program.
func (r *reuse) restore(ctx context.Context, k kind, image string) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	b, err := r.host.openReady(ctx, k, "r-"+strings.ToLower(rand.Text()[:12]), image)
	if err != nil {
		return nil, err
	}
	b.base = b.memory.read(b.process.Sentry())
	if err := b.beginProgram(ctx); err != nil {
		b.discard()
		return nil, err
	}
	return b, nil
}

// take removes an idle sandbox, preferably one with no process of the last program left.
func (r *reuse) take(key reuseKey) *instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	idle := r.idle[key]
	if len(idle) == 0 {
		return nil
	}
	at := len(idle) - 1
	for i := at; i >= 0; i-- {
		if idle[i].zygote.Settled() {
			at = i
			break
		}
	}
	b := idle[at]
	if idle = slices.Delete(idle, at, at+1); len(idle) == 0 {
		delete(r.idle, key)
	} else {
		r.idle[key] = idle
	}
	return b
}

// burst reports whether the job's owner used a shared sandbox a moment ago, and whether one is idle.
func (r *reuse) burst(job Job) (on, idle bool) {
	key := r.keyOf(job, job.Owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.usedAt[key]) < burstGap, len(r.idle[key]) > 0
}

// inBurst reports whether anybody used a shared sandbox for a kind of programs a moment ago.
func (r *reuse) inBurst(k kind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, at := range r.usedAt {
		if key.kind == forkKind(k) && time.Since(at) < demandWindow {
			return true
		}
	}
	return false
}

// put keeps a sandbox for the next program of its owner. Until the processes of the last program have ended, they are
// watched: a program may report its end and continue. A sandbox whose last program failed is discarded.
func (r *reuse) put(b *instance, key reuseKey, limits Limits) {
	b.lastUsed = time.Now()
	last := b.zygote.Current()
	r.mu.Lock()
	if b.ctx.Err() != nil || len(r.idle[key]) >= cap(r.host.slots) {
		r.mu.Unlock()
		b.discard()
		return
	}
	r.idle[key] = append(r.idle[key], b)
	r.usedAt[key] = b.lastUsed
	r.mu.Unlock()
	r.evict()
	if last != nil && last.Failure() != nil { // it has not ended, or has failed
		r.host.cleanups.Go(func() { r.watchEnd(b, last, limits) })
	}
}

// watchEnd discards a sandbox if its last program does not end well and in time, or uses much before it ends.
func (r *reuse) watchEnd(b *instance, last *zygote.Program, limits Limits) {
	select {
	case <-last.Ended(): // as usual, within some milliseconds
	case <-time.After(memoryPoll):
		b.watchRest(last, limits.Memory)
	}
	if err := last.Failure(); err != nil && b.ctx.Err() == nil {
		r.host.log.Debug("sandbox is not used again", "sandbox", b.id, "reason", err)
		r.discardIdle(func(idle *instance) bool { return idle == b })
		b.discard()
	}
}

// watchRest waits until a program has ended, its time is over, or the sandbox exceeds its memory or processor time.
func (b *instance) watchRest(last *zygote.Program, memory int64) {
	ctx, cancel := context.WithTimeout(b.ctx, zygote.EndLimit)
	defer cancel()
	var watcher sync.WaitGroup
	defer watcher.Wait()
	watcher.Go(func() {
		watch(ctx, watchLimits{sentry: b.process.Sentry, cgroup: b.cgroup, gauge: &b.memory, memory: memory, cpu: forkEndCPU}, func(Status) { cancel() })
	})
	select {
	case <-last.Ended():
	case <-ctx.Done():
	}
	cancel()
}

// evict discards the least recently used sandboxes that do not fit into the memory of the pool, where unused ones come first.
func (r *reuse) evict() {
	room := max(1, int(r.host.pool.limits.Memory/instanceCost)-r.host.pool.waiting())
	r.mu.Lock()
	var times []time.Time
	for _, idle := range r.idle {
		for _, b := range idle {
			times = append(times, b.lastUsed)
		}
	}
	r.mu.Unlock()
	if len(times) <= room {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	oldest := times[len(times)-room]
	r.discardIdle(func(b *instance) bool { return b.lastUsed.Before(oldest) })
}

// checkReuse returns why a sandbox must not run another program, or nil.
func (b *instance) checkReuse() error {
	switch {
	case !b.host.isCurrent(b.servers):
		return errors.New("the wrappers have changed")
	case b.zygote.Programs() >= reusePrograms:
		return fmt.Errorf("it has run %d programs", b.zygote.Programs())
	case time.Since(b.since) > reuseAge:
		return fmt.Errorf("it is older than %s", reuseAge)
	case b.memory.read(b.process.Sentry()) > b.base+reuseGrowth:
		return errors.New("it uses more memory than a new one")
	}
	return nil
}

// discardIdle discards the idle sandboxes that match.
func (r *reuse) discardIdle(match func(*instance) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, idle := range r.idle {
		idle = slices.DeleteFunc(idle, func(b *instance) bool {
			if match(b) {
				b.discard()
				return true
			}
			return false
		})
		if len(idle) == 0 {
			delete(r.idle, key)
		} else {
			r.idle[key] = idle
		}
	}
}

// expire discards sandboxes that have waited too long, that see older wrappers, or that do not fit into the memory.
func (r *reuse) expire(now time.Time) {
	r.discardIdle(func(b *instance) bool { return now.Sub(b.lastUsed) > reuseIdle || !b.host.isCurrent(b.servers) })
	r.mu.Lock()
	maps.DeleteFunc(r.usedAt, func(_ reuseKey, at time.Time) bool { return now.Sub(at) > demandWindow })
	r.mu.Unlock()
	r.evict()
}
