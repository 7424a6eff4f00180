package bridge

import (
	"sync"
	"time"
)

// Clock is the time that a program has, which stands still while a person is waited for.
// It implements [tool.Clock] and is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration // at since
	since   time.Time
	pauses  int
	stopped bool
	changed func(still bool)
}

// NewClock returns a clock that calls over, in a goroutine of its own, when limit is up.
func NewClock(limit time.Duration, over func()) *Clock {
	return &Clock{timer: time.AfterFunc(limit, over), left: limit, since: time.Now()}
}

// Tell has the clock say when it stops (true) and when it continues. told must not use the clock. Call it before the
// clock is shared.
func (c *Clock) Tell(told func(still bool)) { c.changed = told }

// Reset gives the program so much time from now on.
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
		c.tell(true)
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
	c.tell(false)
}

// tell is called with mu held, so that reports are in order.
func (c *Clock) tell(still bool) {
	if c.changed != nil && !c.stopped {
		c.changed(still)
	}
}

// Stop ends the clock: it makes no further calls.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true // a pause that goes on tells of no end
	c.timer.Stop()
}
