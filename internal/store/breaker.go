package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// breakerTimeout is how long a caller waits for the store, sharedTimeout for servers that several gateways share: these elect a
	// leader now and then.
	breakerTimeout = 2 * time.Second
	sharedTimeout  = 15 * time.Second
	// breakerPause is how long calls are refused after a timeout. It doubles with each further timeout, up to breakerMaxPause.
	breakerPause    = time.Second
	breakerMaxPause = 30 * time.Second
)

// ErrUnavailable means that the store recently timed out, for example with a full disk.
var ErrUnavailable = errors.New("not tried, as the store did not answer a moment ago")

// Breaker is a circuit breaker: after a timeout it refuses calls for a while, so that a store that does not answer
// does not delay each caller. After the pause one caller tries the store, and the others are refused until it answers. The
// zero value is for a store of one process, and for callers that do not wait long. It is safe for concurrent use.
type Breaker struct {
	store *Store // nil for the zero value

	mu      sync.Mutex
	pause   time.Duration // 0 if the store answers
	until   time.Time     // the end of the pause
	probing bool          // a caller tries the store after the pause
}

// Breaker returns a new circuit breaker for the store, which may be nil. If gateways share the store, a caller waits longer than with the
// zero value, and not at all while the store is known not to answer.
func (s *Store) Breaker() *Breaker { return &Breaker{store: s} }

// Do calls f with a timeout. Its error is f's, or [ErrUnavailable] or [ErrUnreachable] if f was not called.
func (b *Breaker) Do(ctx context.Context, f func(context.Context) error) error {
	if err := b.away(); err != nil {
		return err
	}
	enters, probes := b.enter()
	if !enters {
		return ErrUnavailable
	}
	answered := false
	defer func() { b.leave(probes, answered, ctx.Err() == nil) }() // also if f panics
	bounded, cancel := context.WithTimeout(ctx, b.timeout())
	defer cancel()
	err := f(bounded)
	answered = err == nil || bounded.Err() == nil
	return err
}

// away returns an error while servers that gateways share are known not to answer.
func (b *Breaker) away() error {
	if !b.store.Shared() || b.store.members.isNew() {
		return nil
	}
	return b.store.members.available()
}

func (b *Breaker) timeout() time.Duration {
	if b.store.Shared() {
		return sharedTimeout
	}
	return breakerTimeout
}

// enter reports whether a caller may call the store, and whether it is the one that tries it after a pause.
func (b *Breaker) enter() (enters, probes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == 0 {
		return true, false
	}
	if b.probing || time.Now().Before(b.until) {
		return false, false
	}
	b.probing = true
	return true, true
}

// leave notes whether the store answered. A caller that did not wait for it shows nothing, nor does the timeout of one that
// came before the pause.
func (b *Breaker) leave(probed, answered, waited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probed {
		b.probing = false
	}
	switch {
	case answered:
		b.pause = 0
	case waited && (probed || b.pause == 0):
		b.pause = min(max(2*b.pause, breakerPause), breakerMaxPause)
		b.until = time.Now().Add(b.pause)
	}
}
