package bridge

import (
	"sync"
	"time"
)

// Clock is the timeout of a program. It is paused while the program waits for a person.
// It implements [tool.Clock] and is safe for concurrent use.
type Clock struct {
	mu       sync.Mutex
	timer    *time.Timer
	left     time.Duration // at since
	since    time.Time
	pauses   int
	stopped  bool
	onChange func(still bool)
}

// NewClock returns a clock that calls over, in its own goroutine, when limit has passed.
func NewClock(limit time.Duration, over func()) *Clock {
	return &Clock{timer: time.AfterFunc(limit, over), left: limit, since: time.Now()}
}

// OnChange sets a callback for each pause (true) and resume (false). The callback must not use the clock. Call Tell before the
// clock is shared.
func (c *Clock) OnChange(told func(still bool)) { c.onChange = told }

// Reset restarts the timeout with limit.
func (c *Clock) Reset(limit time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.since = limit, time.Now()
	if c.pauses == 0 && !c.stopped {
		c.timer.Reset(limit)
	}
}

// Pause implements [tool.Clock].
func (c *Clock) Pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses++; c.pauses == 1 {
		c.timer.Stop()
		c.left = max(0, c.left-time.Since(c.since))
		c.notify(true)
	}
	return sync.OnceFunc(c.resume)
}

func (c *Clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses--; c.pauses > 0 || c.stopped {
		return
	}
	c.since = time.Now()
	c.timer.Reset(c.left)
	c.notify(false)
}

// notify calls the callback. It is called with mu held, so that calls are in order.
func (c *Clock) notify(still bool) {
	if c.onChange != nil && !c.stopped {
		c.onChange(still)
	}
}

// Stop ends the clock: it makes no further calls.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true // no callback when a pause ends later
	c.timer.Stop()
}
