package embeddings

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
	// deniedBackoff is the first pause after an error that only an operator can fix.
	deniedBackoff = time.Minute
)

// backoff pauses requests to an endpoint after failures: for a second at first, then
// twice as long each time, with up to a quarter of jitter, and at least as long as the
// endpoint's Retry-After.
type backoff struct {
	initial  time.Duration // 0 is 1 s
	mu       sync.Mutex
	failures int
	until    time.Time
}

// remaining returns the rest of the pause, 0 if it has ended.
func (r *backoff) remaining() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.until))
}

// failing reports whether the last attempt has failed.
func (r *backoff) failing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures > 0
}

// recordFailure records a failure and reports whether it is the first in a row.
func (r *backoff) recordFailure(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := min(cmp.Or(r.initial, minBackoff)<<min(r.failures, 16), maxBackoff)
	if f, ok := errors.AsType[*fault](err); ok {
		if f.needsOperator() {
			wait = min(deniedBackoff<<min(r.failures, 16), maxBackoff)
		}
		wait = max(wait, f.retryAfter)
	}
	r.failures++
	r.until = time.Now().Add(wait + rand.N(wait/4+1))
	return r.failures == 1
}

// recordSuccess records a success and reports whether it is the first after a failure.
func (r *backoff) recordSuccess() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := r.failures > 0
	r.failures, r.until = 0, time.Time{}
	return after
}
