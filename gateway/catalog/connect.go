package catalog

import (
	"context"
	"sync"
	"time"

	"sallyport/gateway/upstream"
)

const (
	// connecting is how many upstreams are started at once: each is a process that wants a core.
	connecting = 8
	// startGrace is how long one of them may keep the others waiting.
	startGrace = 2 * time.Second
	// retryMin doubles up to retryMax between attempts to reach an upstream that
	// has not been there yet: its tools can be found only once it was.
	retryMin = time.Second
	retryMax = 30 * time.Second
	// eagerPause is how soon an upstream that is to be there always is started again.
	eagerPause = 2 * time.Second
)

// connect tries an upstream until it was reached once. One with its offer in the cache
// knows is left to the first call, as is one that is lost later, see
// [upstream.Session]; but one that is eager is started again whenever it ends.
func (c membership) connect(ctx context.Context, m *member, known bool) {
	if up := m.cfg.Load(); up.Problem != "" {
		c.log.Warn("upstream cannot be used", "upstream", m.id, "reason", up.Problem)
		m.tried.Store(true)
		c.touch()
		return
	}
	if known && !m.cfg.Load().Eager && !c.opts.Fresh {
		return
	}
	for wait := retryMin; !c.attempt(ctx, m); wait = min(2*wait, retryMax) {
		if !m.rest(ctx, wait) {
			return
		}
	}
	for wait := eagerPause; m.cfg.Load().Eager && m.rest(ctx, wait); wait = min(2*wait, retryMax) {
		if m.session.State().Status == upstream.Ready || c.attempt(ctx, m) {
			wait = eagerPause / 2
		}
	}
}

// rest waits before the next attempt, at least as long as the session wants, and
// reports false if ctx ended first.
func (m *member) rest(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(max(wait, time.Until(m.session.State().RetryAt)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.poked:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// attempt tries an upstream once and reports whether it was reached.
func (c membership) attempt(ctx context.Context, m *member) bool {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	release := sync.OnceFunc(func() { <-c.slots })
	defer release()
	defer time.AfterFunc(startGrace, release).Stop()
	err := m.session.Connect(ctx) // which logs why it fails
	if ctx.Err() == nil && !m.tried.Swap(true) {
		c.touch()
	}
	return err == nil
}
