package catalog

import (
	"context"
	"sync"
	"time"

	"sallyport/gateway/upstream"
)

const (
	// maxConnecting is how many upstreams start concurrently: each is a process that needs a core.
	maxConnecting = 8
	// startGrace is how long a starting upstream keeps its slot.
	startGrace = 2 * time.Second
	// retryMin is the first pause between attempts to reach an upstream that has
	// never connected. It doubles up to retryMax.
	retryMin = time.Second
	retryMax = 30 * time.Second
	// eagerPause is the first pause before an eager upstream is restarted.
	eagerPause = 2 * time.Second
)

// connect tries an upstream until it has connected once. An upstream with a cached
// offer is connected by its first call, as is one that is lost later, see
// [upstream.Session]. An eager upstream is restarted whenever it ends.
func (c membership) connect(ctx context.Context, m *member, known bool) {
	if up := m.cfg.Load(); up.Problem != "" {
		c.log.Warn("upstream cannot be used", "upstream", m.id, "reason", up.Problem)
		m.tried.Store(true)
		c.requestRebuild()
		return
	}
	if known && !m.cfg.Load().Eager && !c.opts.Fresh {
		return
	}
	for wait := retryMin; !c.attempt(ctx, m); wait = min(2*wait, retryMax) {
		if !m.waitRetry(ctx, wait) {
			return
		}
	}
	for wait := eagerPause; m.cfg.Load().Eager && m.waitRetry(ctx, wait); wait = min(2*wait, retryMax) {
		if m.session.State().Status == upstream.Ready || c.attempt(ctx, m) {
			wait = eagerPause / 2
		}
	}
}

// waitRetry waits before the next attempt, at least until the session's RetryAt. It
// reports false if ctx has ended.
func (m *member) waitRetry(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(max(wait, time.Until(m.session.State().RetryAt)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.wakeup:
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
		c.requestRebuild()
	}
	return err == nil
}
