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
	// restDenied is the first pause where only a person can mend it.
	restDenied = time.Minute
)

// rest says when an endpoint is left alone: after a failure for a second, then
// twice as long each time, a quarter more by chance, and never shorter than the
// endpoint asks for.
type rest struct {
	first    time.Duration // 0 is 1 s
	mu       sync.Mutex
	failures int
	until    time.Time
}

// over returns how much longer it lasts, 0 if it is over.
func (r *rest) over() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, time.Until(r.until))
}

// wary reports whether the last attempt failed.
func (r *rest) wary() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures > 0
}

// failed notes a failure and returns whether it is the first in a row.
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

// worked notes a success and returns whether it is the first after a failure.
func (r *rest) worked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := r.failures > 0
	r.failures, r.until = 0, time.Time{}
	return after
}
