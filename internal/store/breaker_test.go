package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestBreaker: a store that does not answer costs one timeout, and is tried again after the pause. An error, or a caller that
// has gone, opens no breaker.
func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b Breaker
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		refused := errors.New("refused")
		works := func(context.Context) error { return refused }
		for i, step := range []struct {
			gone  bool
			do    func(context.Context) error
			want  error
			takes time.Duration
		}{
			{false, works, refused, 0},
			{true, hangs, context.Canceled, 0},
			{false, hangs, context.DeadlineExceeded, breakerTimeout},
			{false, works, ErrUnavailable, 0},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if step.gone {
				cancel()
			}
			start := time.Now()
			if err := b.Do(ctx, step.do); !errors.Is(err, step.want) || time.Since(start) != step.takes {
				t.Errorf("%d: %v after %v, want %v after %v", i, err, time.Since(start), step.want, step.takes)
			}
		}
		time.Sleep(breakerPause)
		if err := b.Do(t.Context(), works); !errors.Is(err, refused) {
			t.Errorf("after the pause: %v", err)
		}
	})
}
