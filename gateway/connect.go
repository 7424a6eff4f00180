package gateway

import (
	"context"
	"sync"
	"time"
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
)

// connect tries every upstream until it was reached once. One that is lost
// later is connected again by the next call, see [upstream.Session].
func (c *catalog) connect(ctx context.Context) {
	slots := make(chan struct{}, connecting)
	var reached sync.WaitGroup
	for _, m := range c.members {
		reached.Go(func() {
			for wait := retryMin; ; wait = min(2*wait, retryMax) {
				if c.attempt(ctx, m, slots) || !pause(ctx, max(wait, time.Until(m.session.State().RetryAt))) {
					return
				}
			}
		})
	}
	reached.Wait()
}

// attempt tries an upstream once and reports whether it was reached.
func (c *catalog) attempt(ctx context.Context, m *member, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	release := sync.OnceFunc(func() { <-slots })
	defer release()
	defer time.AfterFunc(startGrace, release).Stop()
	err := m.session.Connect(ctx) // which logs why it fails
	if ctx.Err() == nil {
		m.tried.Store(true)
		c.touch()
	}
	return err == nil
}

// pause waits, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
