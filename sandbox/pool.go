//go:build linux

package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// instanceCost is the approximate memory of one idle sandbox, in bytes: see bench/results.
	instanceCost = 40 << 20
	// demandWindow is the time within which programs count as concurrent demand.
	demandWindow = time.Second
	// shrinkAfter is how long demand must stay below the peak before the peak decreases by one.
	shrinkAfter = time.Minute
	// unusedAfter is how long a kind without programs keeps idle sandboxes, unless Warm has named it.
	unusedAfter = 10 * time.Minute
	// refillInterval is the minimum time between two refills while programs run, because refills slow them down.
	refillInterval = 500 * time.Millisecond
	// publishDelay is the delay of refills after a publish, because publishes come in bursts.
	publishDelay = 200 * time.Millisecond
	// startRetryDelay is the retry delay of a kind after a failed start.
	startRetryDelay = 30 * time.Second
)

// pool keeps idle sandboxes for programs, within Options.Pool and according to
// demand. If it is disabled or empty, it starts a sandbox for the program.
type pool struct {
	host   *Host
	limits Pool
	wake   chan struct{} // holds one

	mu          sync.Mutex // guards the rest
	idle        map[kind]*idleSet
	publishedAt time.Time // when the last one was
}

// idleSet holds the idle sandboxes of one kind.
type idleSet struct {
	instances  []*instance // oldest first
	starting   int
	requests   []time.Time // within the last burst
	peak       int
	peakAt     time.Time
	usedAt     time.Time
	pinned     bool // set by Warm
	retryAfter time.Time
}

func newPool(h *Host, limits Pool) *pool {
	limits.Memory = cmp.Or(limits.Memory, 512<<20)
	limits.Min = min(limits.Min, limits.Max)
	return &pool{host: h, limits: limits, wake: make(chan struct{}, 1), idle: map[kind]*idleSet{}}
}

// Warm announces future jobs, so that sandboxes for them are started in advance.
// It returns at once. Without a pool it does nothing.
func (h *Host) Warm(jobs ...Job) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if h.pool.limits.Max == 0 {
		return
	}
	for _, job := range jobs {
		h.pool.idleFor(kindOf(job)).pinned = true
	}
	h.pool.signal()
}

// idleFor is called with mu held.
func (p *pool) idleFor(k kind) *idleSet {
	s := p.idle[k]
	if s == nil {
		s = &idleSet{peak: p.limits.Min, peakAt: time.Now(), usedAt: time.Now()}
		p.idle[k] = s
	}
	return s
}

func (p *pool) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// get returns a sandbox that is ready for a program: an idle one, or a new one.
// waited is true for an idle one.
func (p *pool) get(ctx context.Context, job Job) (b *instance, waited bool, err error) {
	k := kindOf(job)
	if p.limits.Max > 0 {
		p.recordDemand(k)
		defer p.signal()
	}
	if b := p.takeLive(ctx, k); b != nil {
		return b, true, nil
	}
	b, err = p.host.start(ctx, k, job.ID)
	return b, false, err
}

// takeIdle returns an idle sandbox, or nil if there is none.
func (p *pool) takeIdle(ctx context.Context, k kind) *instance {
	b := p.takeLive(ctx, k)
	if b != nil {
		p.recordDemand(k)
	} else {
		p.recordUse(k)
	}
	p.signal()
	return b
}

// recordUse records that a program of that kind runs in a shared sandbox, so that the pool keeps one for others.
func (p *pool) recordUse(k kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idleFor(k).usedAt = time.Now()
}

// takeLive returns an idle sandbox that can run a program, nil if there is none.
func (p *pool) takeLive(ctx context.Context, k kind) *instance {
	for b := p.take(k); b != nil; b = p.take(k) {
		if p.host.isCurrent(b.servers) && b.alive(ctx) {
			return b
		}
		b.discard()
	}
	return nil
}

// start starts a sandbox: restored from a snapshot if there is one, otherwise from scratch. Without a pool the process
// may end with the program, so it makes the snapshot first, or the next process would have none either.
func (h *Host) start(ctx context.Context, k kind, id string) (*instance, error) {
	if h.pool.limits.Max == 0 {
		h.snapshots.wait(ctx, k)
	}
	image := h.snapshots.find(k)
	if image == "" {
		return h.openReady(ctx, k, id, "")
	}
	limited, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	b, err := h.openReady(limited, k, id, image)
	if err != nil && ctx.Err() == nil && h.ctx.Err() == nil {
		h.log.Warn("snapshot cannot be restored", "interpreter", k.interpreter, "error", err)
		h.snapshots.invalidate(k, image)
		b, err = h.openReady(ctx, k, id, "")
	}
	return b, err
}

func (h *Host) openReady(ctx context.Context, k kind, id, image string) (*instance, error) {
	b, err := h.open(k, id, image)
	if err != nil {
		return nil, err
	}
	if err := b.ready(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	if image == "" {
		b.limitInodes(ctx)
	}
	return b, nil
}

// recordDemand records that a program of that kind has arrived.
func (p *pool) recordDemand(k kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, now := p.idleFor(k), time.Now()
	s.usedAt = now
	s.requests = append(slices.DeleteFunc(s.requests, func(t time.Time) bool { return now.Sub(t) > demandWindow }), now)
	if len(s.requests) >= s.peak {
		s.peak, s.peakAt = min(len(s.requests), p.limits.Max), now
	}
}

func (p *pool) take(k kind) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.idle[k]
	if s == nil || len(s.instances) == 0 {
		return nil
	}
	b := s.instances[0]
	s.instances = slices.Delete(s.instances, 0, 1)
	return b
}

// waiting returns how many sandboxes are idle.
func (p *pool) waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.idle {
		n += len(s.instances)
	}
	return n
}

// waitingOf returns how many sandboxes of a kind are idle.
func (p *pool) waitingOf(k kind) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.idle[k]; s != nil {
		return len(s.instances)
	}
	return 0
}

// retireIdle discards idle sandboxes, because they see older wrappers.
func (p *pool) retireIdle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.publishedAt = time.Now()
	for _, s := range p.idle {
		for _, b := range s.instances {
			b.discard()
		}
		s.instances = nil
	}
	p.signal()
}

// fill keeps as many sandboxes idle as demand requires, until ctx ends.
func (p *pool) fill(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			p.drain()
			return
		case <-p.wake:
		case <-tick.C:
			p.shrink(time.Now())
			p.host.reuse.expire(time.Now())
		}
		for ctx.Err() == nil {
			k, ok := p.mostNeeded()
			if !ok || !p.waitToRefill(ctx) {
				break
			}
			p.add(ctx, k)
		}
		p.prepareReuse()
	}
}

// prepareReuse starts to make the snapshots for sandboxes that run several programs, of the kinds in use.
func (p *pool) prepareReuse() {
	if !p.host.opts.Reuse {
		return
	}
	p.mu.Lock()
	kinds := slices.Collect(maps.Keys(p.idle))
	p.mu.Unlock()
	for _, k := range kinds {
		p.host.snapshots.find(forkKind(k))
	}
}

// waitToRefill waits until a refill does not slow programs down. If nothing runs, it returns at once.
// It returns false when ctx ends.
func (p *pool) waitToRefill(ctx context.Context) bool {
	wait := time.Duration(0)
	if len(p.host.slots) > 0 {
		wait = refillInterval
	}
	p.mu.Lock()
	wait = max(wait, publishDelay-time.Since(p.publishedAt))
	p.mu.Unlock()
	for end := time.Now().Add(wait); wait > 0; wait = time.Until(end) {
		step := time.NewTimer(min(wait, 10*time.Millisecond))
		select {
		case <-ctx.Done():
			step.Stop()
			return false
		case <-step.C:
		}
		if len(p.host.slots) == 0 && time.Since(p.lastPublish()) > publishDelay {
			return true
		}
	}
	return true
}

func (p *pool) lastPublish() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.publishedAt
}

// mostNeeded returns the kind that lacks the most sandboxes, and false if none lacks any or memory is used up.
func (p *pool) mostNeeded() (which kind, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, most := 0, 0
	for k, s := range p.idle {
		have := len(s.instances) + s.starting
		all += have
		want := min(s.peak, p.limits.Max)
		if p.host.reuse.inBurst(k) { // its programs need no other ones, and each costs as much as some of them
			want = min(want, 1)
		}
		if lack := want - have; lack > most && time.Now().After(s.retryAfter) {
			which, most = k, lack
		}
	}
	return which, most > 0 && int64(all+1)*instanceCost <= p.limits.Memory
}

// add starts one idle sandbox.
func (p *pool) add(ctx context.Context, k kind) {
	p.mu.Lock()
	s := p.idleFor(k)
	s.starting++
	p.mu.Unlock()
	p.host.snapshots.wait(ctx, k)
	b, err := p.host.start(ctx, k, "w-"+strings.ToLower(rand.Text()[:12]))
	p.mu.Lock()
	defer p.mu.Unlock()
	s.starting--
	if err != nil {
		s.retryAfter = time.Now().Add(startRetryDelay)
		if ctx.Err() == nil {
			p.host.log.Warn("sandbox for the pool", "interpreter", k.interpreter, "error", err)
		}
		return
	}
	s.instances = append(s.instances, b)
	p.host.log.Debug("sandbox waits", "sandbox", b.id, "interpreter", k.interpreter, "environment", k.environment, "waiting", len(s.instances))
	p.host.poolWork.Go(func() { p.removeOnExit(b, s) })
}

// removeOnExit removes a sandbox that dies while it is idle. It returns when the sandbox ends.
func (p *pool) removeOnExit(b *instance, s *idleSet) {
	select {
	case <-b.process.Done():
	case <-b.ctx.Done():
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(s.instances, b); i >= 0 {
		s.instances = slices.Delete(s.instances, i, i+1)
		p.host.log.Warn("a sandbox died while it waited", "sandbox", b.id)
		b.discard()
		p.signal()
	}
}

// shrink discards idle sandboxes that demand no longer requires.
func (p *pool) shrink(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, s := range p.idle {
		if s.peak > p.limits.Min && now.Sub(s.peakAt) > shrinkAfter {
			s.peak, s.peakAt = s.peak-1, now
		}
		want := s.peak
		if !s.pinned && now.Sub(s.usedAt) > unusedAfter {
			want = 0
		}
		for len(s.instances) > want {
			s.instances[0].discard()
			s.instances = slices.Delete(s.instances, 0, 1)
		}
		if want == 0 && s.starting == 0 && !s.pinned {
			delete(p.idle, k)
		}
	}
}

// drain discards all idle sandboxes.
func (p *pool) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, s := range p.idle {
		for _, b := range s.instances {
			b.discard()
		}
		delete(p.idle, k)
	}
}

// Waiting returns how many idle sandboxes there are for an interpreter, and
// whether these are as many as demand requires.
func (h *Host) Waiting(i Interpreter) (n int, full bool) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	full = true
	for k, s := range h.pool.idle {
		if k.interpreter == i {
			n += len(s.instances)
			full = full && len(s.instances) >= min(s.peak, h.pool.limits.Max)
		}
	}
	return n, full
}

// String names the kind in errors.
func (k kind) String() string {
	return fmt.Sprintf("%s of environment %q", k.interpreter, k.environment)
}
