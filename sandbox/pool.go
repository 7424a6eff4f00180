//go:build linux

package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// boxCost is the approximate memory of one idle sandbox, in bytes: see bench/results.
	boxCost = 40 << 20
	// burst is the time within which programs count as concurrent demand.
	burst = time.Second
	// calm is how long demand must stay below the peak before the peak decreases by one.
	calm = time.Minute
	// forgotten is how long a kind without programs keeps idle sandboxes, unless Warm has named it.
	forgotten = 10 * time.Minute
	// pace is the minimum time between two refills while programs run, because refills slow them down.
	pace = 500 * time.Millisecond
	// quiet is the delay of refills after a publish, because publishes come in bursts.
	quiet = 200 * time.Millisecond
	// sulk is the retry delay of a kind after a failed start.
	sulk = 30 * time.Second
)

// pool keeps idle sandboxes for programs, within Options.Pool and according to
// demand. If it is disabled or empty, it starts a sandbox for the program.
type pool struct {
	host   *Host
	limits Pool
	wake   chan struct{} // holds one

	mu        sync.Mutex // guards the rest
	shelves   map[kind]*shelf
	publishes time.Time // when the last one was
}

// shelf holds the idle sandboxes of one kind.
type shelf struct {
	waiting  []*box // oldest first
	starting int
	taken    []time.Time // within the last burst
	peak     int
	peakAt   time.Time
	usedAt   time.Time
	kept     bool // set by Warm
	notUntil time.Time
}

func newPool(h *Host, limits Pool) *pool {
	limits.Memory = cmp.Or(limits.Memory, 512<<20)
	limits.Min = min(limits.Min, limits.Max)
	return &pool{host: h, limits: limits, wake: make(chan struct{}, 1), shelves: map[kind]*shelf{}}
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
		h.pool.shelf(kindOf(job)).kept = true
	}
	h.pool.poke()
}

// shelf is called with mu held.
func (p *pool) shelf(k kind) *shelf {
	s := p.shelves[k]
	if s == nil {
		s = &shelf{peak: p.limits.Min, peakAt: time.Now(), usedAt: time.Now()}
		p.shelves[k] = s
	}
	return s
}

func (p *pool) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// get returns a sandbox whose guest is ready for a program: an idle one, or a new one.
// waited is true for an idle one.
func (p *pool) get(ctx context.Context, job Job) (b *box, waited bool, err error) {
	k := kindOf(job)
	if p.limits.Max > 0 {
		p.demand(k)
		defer p.poke()
	}
	for b := p.take(k); b != nil; b = p.take(k) {
		if p.host.isNewest(b.servers) && b.alive(ctx) {
			return b, true, nil
		}
		b.discard()
	}
	b, err = p.host.start(ctx, k, job.ID)
	return b, false, err
}

// start starts a sandbox: restored from a snapshot if there is one, otherwise from scratch.
func (h *Host) start(ctx context.Context, k kind, id string) (*box, error) {
	image := h.snapshots.find(k)
	if image == "" {
		return h.openReady(ctx, k, id, "")
	}
	limited, cancel := context.WithTimeout(ctx, restoreLimit)
	defer cancel()
	b, err := h.openReady(limited, k, id, image)
	if err != nil && ctx.Err() == nil && h.ctx.Err() == nil {
		h.log.Warn("snapshot cannot be restored", "interpreter", k.interpreter, "error", err)
		h.snapshots.spoil(k, image)
		b, err = h.openReady(ctx, k, id, "")
	}
	return b, err
}

func (h *Host) openReady(ctx context.Context, k kind, id, image string) (*box, error) {
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

// demand records that a program of that kind has arrived.
func (p *pool) demand(k kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, now := p.shelf(k), time.Now()
	s.usedAt = now
	s.taken = append(slices.DeleteFunc(s.taken, func(t time.Time) bool { return now.Sub(t) > burst }), now)
	if len(s.taken) >= s.peak {
		s.peak, s.peakAt = min(len(s.taken), p.limits.Max), now
	}
}

func (p *pool) take(k kind) *box {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shelves[k]
	if s == nil || len(s.waiting) == 0 {
		return nil
	}
	b := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	return b
}

// published discards idle sandboxes, because they see older wrappers.
func (p *pool) published() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.publishes = time.Now()
	for _, s := range p.shelves {
		for _, b := range s.waiting {
			b.discard()
		}
		s.waiting = nil
	}
	p.poke()
}

// fill keeps as many sandboxes idle as demand requires, until ctx ends.
func (p *pool) fill(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			p.empty()
			return
		case <-p.wake:
		case <-tick.C:
			p.shrink(time.Now())
		}
		for ctx.Err() == nil {
			k, ok := p.wanted()
			if !ok || !p.pause(ctx) {
				break
			}
			p.add(ctx, k)
		}
	}
}

// pause waits until a refill does not slow programs down. If nothing runs, it returns at once.
// It returns false when ctx ends.
func (p *pool) pause(ctx context.Context) bool {
	wait := time.Duration(0)
	if len(p.host.slots) > 0 {
		wait = pace
	}
	p.mu.Lock()
	wait = max(wait, quiet-time.Since(p.publishes))
	p.mu.Unlock()
	for end := time.Now().Add(wait); wait > 0; wait = time.Until(end) {
		step := time.NewTimer(min(wait, 10*time.Millisecond))
		select {
		case <-ctx.Done():
			step.Stop()
			return false
		case <-step.C:
		}
		if len(p.host.slots) == 0 && time.Since(p.lastPublish()) > quiet {
			return true
		}
	}
	return true
}

func (p *pool) lastPublish() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.publishes
}

// wanted returns the kind that lacks the most sandboxes, and false if none lacks any or memory is used up.
func (p *pool) wanted() (which kind, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, most := 0, 0
	for k, s := range p.shelves {
		have := len(s.waiting) + s.starting
		all += have
		if lack := min(s.peak, p.limits.Max) - have; lack > most && time.Now().After(s.notUntil) {
			which, most = k, lack
		}
	}
	return which, most > 0 && int64(all+1)*boxCost <= p.limits.Memory
}

// add starts one idle sandbox.
func (p *pool) add(ctx context.Context, k kind) {
	p.mu.Lock()
	s := p.shelf(k)
	s.starting++
	p.mu.Unlock()
	p.host.snapshots.await(ctx, k)
	b, err := p.host.start(ctx, k, "w-"+strings.ToLower(rand.Text()[:12]))
	p.mu.Lock()
	defer p.mu.Unlock()
	s.starting--
	if err != nil {
		s.notUntil = time.Now().Add(sulk)
		if ctx.Err() == nil {
			p.host.log.Warn("sandbox for the pool", "interpreter", k.interpreter, "error", err)
		}
		return
	}
	s.waiting = append(s.waiting, b)
	p.host.log.Debug("sandbox waits", "sandbox", b.id, "interpreter", k.interpreter, "environment", k.environment, "waiting", len(s.waiting))
	p.host.filling.Go(func() { p.follow(b, s) })
}

// follow removes a sandbox that dies while it is idle. It returns when the sandbox ends.
func (p *pool) follow(b *box, s *shelf) {
	select {
	case <-b.process.Done():
	case <-b.ctx.Done():
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(s.waiting, b); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		p.host.log.Warn("a sandbox died while it waited", "sandbox", b.id)
		b.discard()
		p.poke()
	}
}

// shrink discards idle sandboxes that demand no longer requires.
func (p *pool) shrink(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, s := range p.shelves {
		if s.peak > p.limits.Min && now.Sub(s.peakAt) > calm {
			s.peak, s.peakAt = s.peak-1, now
		}
		want := s.peak
		if !s.kept && now.Sub(s.usedAt) > forgotten {
			want = 0
		}
		for len(s.waiting) > want {
			s.waiting[0].discard()
			s.waiting = slices.Delete(s.waiting, 0, 1)
		}
		if want == 0 && s.starting == 0 && !s.kept {
			delete(p.shelves, k)
		}
	}
}

// empty discards all idle sandboxes.
func (p *pool) empty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, s := range p.shelves {
		for _, b := range s.waiting {
			b.discard()
		}
		delete(p.shelves, k)
	}
}

// Waiting returns how many idle sandboxes there are for an interpreter, and
// whether these are as many as demand requires.
func (h *Host) Waiting(i Interpreter) (n int, full bool) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	full = true
	for k, s := range h.pool.shelves {
		if k.interpreter == i {
			n += len(s.waiting)
			full = full && len(s.waiting) >= min(s.peak, h.pool.limits.Max)
		}
	}
	return n, full
}

// String names the kind in errors.
func (k kind) String() string {
	return fmt.Sprintf("%s of environment %q", k.interpreter, k.environment)
}
