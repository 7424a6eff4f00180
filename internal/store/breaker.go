package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

const (
	// breakerTimeout is how long a caller waits for the store.
	breakerTimeout = 2 * time.Second
	// breakerPause is how long calls are refused after a timeout.
	breakerPause = 30 * time.Second
)

// ErrUnavailable means that the store recently timed out, for example with a full disk.
var ErrUnavailable = errors.New("not tried, as the store did not answer a moment ago")

// Breaker is a circuit breaker: after a timeout it refuses calls for a while, so that a store that does not answer
// does not delay each caller. The zero value is ready. It is safe for concurrent use.
type Breaker struct{ until atomic.Int64 }

// Do calls f with a timeout. Its error is f's, or [ErrUnavailable] if f was not called.
func (b *Breaker) Do(ctx context.Context, f func(context.Context) error) error {
	if time.Now().UnixNano() < b.until.Load() {
		return ErrUnavailable
	}
	bounded, cancel := context.WithTimeout(ctx, breakerTimeout)
	defer cancel()
	err := f(bounded)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		b.until.Store(time.Now().Add(breakerPause).UnixNano())
	}
	return err
}
