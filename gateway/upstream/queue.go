package upstream

import (
	"context"
	"fmt"
	"time"

	"sallyport/gateway/upstream/backoff"
	"sallyport/internal/tool"
)

// defaultConcurrency is how many calls of one upstream may be in flight at once.
const defaultConcurrency = 32

// queue counts the calls in flight.
type queue struct{ *Session }

// enter waits for a slot among the concurrent calls, in FIFO order, at most for the
// time limit of a call, which starts only afterwards. On success the caller must
// call leave.
func (s queue) enter(ctx context.Context) error {
	s.use()
	if s.slots.TryAcquire(1) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, s.settings.Timeout)
	defer cancel()
	if s.slots.Acquire(waiting, 1) == nil {
		return nil
	}
	s.unuse()
	if ctx.Err() != nil {
		return faults(s).contextError(ctx)
	}
	return &tool.Error{Kind: tool.Limit,
		Message: fmt.Sprintf("upstream %s was busy for %s, at its limit of %d calls at once", s.settings.ID, seconds(s.settings.Timeout), s.settings.Concurrency),
		Hint:    "make fewer calls at once", Retryable: true}
}

func (s queue) leave() {
	s.slots.Release(1)
	s.unuse()
}

// use marks the session as in use, not idle, until unuse.
func (s queue) use() { s.users.Add(1) }

func (s queue) unuse() {
	s.lastUsed.Store(int64(time.Since(s.created)))
	s.users.Add(-1)
}

// stopIfIdle stops a link that was idle for the time in the settings. Otherwise it returns
// a timer for the next check, nil if there is no link to stop. Only the loop calls
// it, so that the next process starts after this one has ended.
func (s queue) stopIfIdle() <-chan time.Time {
	s.mu.Lock()
	l := s.link
	if l == nil || !l.alive() || s.settings.Idle <= 0 {
		s.mu.Unlock()
		return nil
	}
	if wait := s.untilIdle(); wait > 0 {
		s.mu.Unlock()
		return time.After(wait)
	}
	// Later callers find no link, and request a new one from the loop.
	s.link = nil
	s.backoff = backoff.Backoff{}
	s.setStatus(Idle, "")
	s.mu.Unlock()
	s.log.Info("stop idle upstream", "after", s.settings.Idle)
	l.close()
	return nil
}

// untilIdle returns how much longer the session must stay unused to count as idle.
func (s queue) untilIdle() time.Duration {
	if s.users.Load() > 0 {
		return s.settings.Idle
	}
	return s.settings.Idle - (time.Since(s.created) - time.Duration(s.lastUsed.Load()))
}
