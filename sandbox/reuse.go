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

	"sallyport/sandbox/idle"
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

	idle idle.Set[reuseKey, *instance]

	mu         sync.Mutex // guards the rest
	used       map[reuseKey]ownerUse
	retryAfter map[kind]time.Time // of kinds that could not start
	sparing    bool               // a spare sandbox is being started
}

// ownerUse is an owner's use of shared sandboxes.
type ownerUse struct {
	at   time.Time // when a program last began or ended
	late int       // programs of the burst that found a sandbox, but no process that waited
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
	r.noteUse(key, true)
	for b := r.take(key); b != nil; b = r.take(key) {
		ahead, err := b.useAgain(ctx)
		if err == nil {
			if !ahead {
				r.noteLate(key)
			}
			return b, true
		}
		r.host.log.Debug("sandbox is not used again", "sandbox", b.id, "reason", err)
		b.discard()
	}
	return r.start(ctx, key.kind, false), false
}

func (r *reuse) noteUse(key reuseKey, begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	late := r.used[key].late
	if begins && time.Since(r.used[key].at) > burstGap {
		late = 0
	}
	r.used[key] = ownerUse{time.Now(), late}
}

// useAgain claims the process that waits for a program, or forks one: ahead tells which. It returns why the sandbox must
// not run another program.
func (b *instance) useAgain(ctx context.Context) (ahead bool, err error) {
	b.begin.Lock()
	defer b.begin.Unlock()
	if b.ctx.Err() != nil {
		return false, context.Cause(b.ctx)
	}
	if b.zygote.Waits() {
		return true, b.claim()
	}
	if err := b.zygote.Settle(ctx); err != nil {
		return false, err
	}
	if err := b.checkReuse(); err != nil { // the memory of the last program is free by now
		return false, err
	}
	return false, b.beginProgram(false)
}

// start starts a sandbox with a zygote and its first program. It returns nil while the snapshot is being made, and after a
// failure, which is logged. A failed start is repeated after startRetryDelay.
func (r *reuse) start(ctx context.Context, k kind, ahead bool) *instance {
	image, err := r.host.snapshots.made(k)
	if image == "" && err == nil {
		return nil
	}
	var b *instance
	if err == nil {
		b, err = r.restore(ctx, k, image, ahead)
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
func (r *reuse) restore(ctx context.Context, k kind, image string, ahead bool) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	b, err := r.host.openReady(ctx, k, "r-"+strings.ToLower(rand.Text()[:12]), image)
	if err != nil {
		return nil, err
	}
	b.base = b.memory.read(b.process.Sentry())
	if err := b.beginProgram(ahead); err != nil {
		b.discard()
		return nil, err
	}
	return b, nil
}

// take removes an idle sandbox, preferably one with a process that waits, or with no process of the last program left.
func (r *reuse) take(key reuseKey) *instance {
	b, _ := r.idle.Take(key, func(b *instance) int { return b.zygote.Rank() })
	return b
}

// burst reports whether the job's owner used a shared sandbox a moment ago, and whether one is idle.
func (r *reuse) burst(job Job) (on, idle bool) {
	key := r.keyOf(job, job.Owner)
	n, _ := r.idle.Count(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.used[key].at) < burstGap, n > 0
}

// inBurst reports whether anybody used a shared sandbox for a kind of programs a moment ago.
func (r *reuse) inBurst(k kind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, use := range r.used {
		if key.kind == forkKind(k) && time.Since(use.at) < demandWindow {
			return true
		}
	}
	return false
}

// put keeps a sandbox for the next program of its owner. Until the processes of the last program have ended, they are
// watched: a program may report its end and continue. A sandbox whose last program failed is discarded.
func (r *reuse) put(b *instance, key reuseKey, limits Limits) {
	last := b.zygote.Current()
	if !r.keep(b, key) {
		return
	}
	r.noteUse(key, false)
	r.host.cleanups.Go(func() {
		if last.Failure() != nil { // it has not ended, or has failed
			r.watchEnd(b, last, limits)
		}
		r.forkAhead(b)
	})
}

// keep adds an idle sandbox, and reports whether it could.
func (r *reuse) keep(b *instance, key reuseKey) bool {
	b.lastUsed = time.Now()
	if n, _ := r.idle.Count(key); n >= cap(r.host.slots) {
		b.discard()
		return false
	}
	r.idle.Put(key, b)
	if b.ctx.Err() != nil { // the host may have discarded the idle ones just before
		r.retire(b, context.Cause(b.ctx))
		return false
	}
	r.evict()
	return true
}

// retire discards a sandbox, which may be idle.
func (r *reuse) retire(b *instance, why error) {
	r.host.log.Debug("sandbox is not used again", "sandbox", b.id, "reason", why)
	r.idle.Remove(func(idle *instance) bool { return idle == b })
	b.discard()
}

// watchEnd discards a sandbox if its last program does not end well and in time, or uses much before it ends.
func (r *reuse) watchEnd(b *instance, last *zygote.Program, limits Limits) {
	select {
	case <-last.Ended(): // as usual, within some milliseconds
	case <-time.After(memoryPoll):
		b.watchRest(last, limits.Memory)
	}
	if err := last.Failure(); err != nil && b.ctx.Err() == nil {
		r.retire(b, err)
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
	room := r.room()
	var times []time.Time
	r.idle.Each(func(_ reuseKey, b *instance) { times = append(times, b.lastUsed) })
	if len(times) <= room {
		return
	}
	slices.SortFunc(times, time.Time.Compare)
	oldest := times[len(times)-room]
	r.discardIdle(func(b *instance) bool { return b.lastUsed.Before(oldest) })
}

// room returns how many idle sandboxes fit into the memory of the pool.
func (r *reuse) room() int {
	return max(1, int(r.host.pool.limits.Memory/instanceCost)-r.host.pool.waiting())
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
	for _, b := range r.idle.Remove(match) {
		b.discard()
	}
}

// expire discards sandboxes that have waited too long, that see older wrappers, or that do not fit into the memory.
func (r *reuse) expire(now time.Time) {
	r.discardIdle(func(b *instance) bool { return now.Sub(b.lastUsed) > reuseIdle || !b.host.isCurrent(b.servers) })
	r.mu.Lock()
	maps.DeleteFunc(r.used, func(_ reuseKey, use ownerUse) bool { return now.Sub(use.at) > demandWindow })
	r.mu.Unlock()
	r.evict()
}
