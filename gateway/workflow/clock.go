package workflow

import (
	"context"
	"sync"
	"time"

	"sallyport/internal/tool"
)

// clock cancels a context after a time limit. The time does not run while the clock is paused: it implements [tool.Clock], so
// that calls that wait for a person pause it. Pausing a clock also pauses the clocks of the enclosing contexts.
type clock struct {
	outer tool.Clock
	stop  func()

	mu     sync.Mutex
	left   time.Duration
	since  time.Time // when it was last started
	pauses int
	timer  *time.Timer
}

// withTimeout returns a context that is canceled with cause after limit; 0 means no limit. Call stop to release it.
func withTimeout(ctx context.Context, limit time.Duration, cause error) (_ context.Context, stop func()) {
	if limit <= 0 {
		return ctx, func() {}
	}
	inner, cancel := context.WithCancelCause(ctx)
	c := &clock{outer: tool.ClockOf(ctx), left: limit, since: time.Now(), stop: func() { cancel(cause) }}
	c.timer = time.AfterFunc(limit, c.stop)
	return tool.WithClock(inner, c), func() {
		c.timer.Stop()
		cancel(context.Canceled)
	}
}

// Pause implements [tool.Clock].
func (c *clock) Pause() (resume func()) {
	outer := func() {}
	if c.outer != nil {
		outer = c.outer.Pause()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses++; c.pauses == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
	return sync.OnceFunc(func() {
		c.resume()
		outer()
	})
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses--; c.pauses == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

var _ tool.Clock = (*clock)(nil)
