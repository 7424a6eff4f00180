package embeddings

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	restMin = time.Second
	restMax = 5 * time.Minute
	// restDenied is the first pause after an error that only an operator can fix.
	restDenied = time.Minute
)

// rest pauses requests to an endpoint after failures: for a second at first, then
// twice as long each time, with up to a quarter of jitter, and at least as long as the
// endpoint's Retry-After.
type rest struct {
	first    time.Duration // 0 is 1 s
	mu       sync.Mutex
	failures int
	until    time.Time
}

// over returns the rest of the pause, 0 if it has ended.
func (r *rest) over() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.until))
}

// wary reports whether the last attempt has failed.
func (r *rest) wary() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures > 0
}

// failed records a failure and reports whether it is the first in a row.
func (r *rest) failed(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := min(cmp.Or(r.first, restMin)<<min(r.failures, 16), restMax)
	if f, ok := errors.AsType[*fault](err); ok {
		if f.denies() {
			wait = min(restDenied<<min(r.failures, 16), restMax)
		}
		wait = max(wait, f.after)
	}
	r.failures++
	r.until = time.Now().Add(wait + rand.N(wait/4+1))
	return r.failures == 1
}

// worked records a success and reports whether it is the first after a failure.
func (r *rest) worked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := r.failures > 0
	r.failures, r.until = 0, time.Time{}
	return after
}
