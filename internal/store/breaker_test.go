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
		refused := errors.New("refused")
		works := func(context.Context) error { return refused }
		for i, step := range []struct {
			gone  bool
			do    func(context.Context) error
			want  error
			takes time.Duration
		}{
			{false, works, refused, 0},
			{true, hang, context.Canceled, 0},
			{false, hang, context.DeadlineExceeded, breakerTimeout},
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

// hang is a store that does not answer.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestBreakerProbes checks that one caller at a time tries a store that does not answer, less and less often.
func TestBreakerProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b Breaker
		var tried []int
		begin := time.Now()
		for range 600 { // every 100 ms, for a minute
			go func() {
				_ = b.Do(t.Context(), func(ctx context.Context) error {
					tried = append(tried, int(time.Since(begin).Seconds()))
					return hang(ctx)
				})
			}()
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(breakerTimeout)
		if len(tried) != 25 { // 20 callers before the first timeout; then after pauses of 1, 2, 4, 8 and 16 s
			t.Error(len(tried), tried)
		}
	})
}

// TestBreakerOfACanceledProbe checks that a probe whose caller gives up neither closes the breaker nor keeps it open.
func TestBreakerOfACanceledProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b Breaker
		_ = b.Do(t.Context(), hang)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Do(ctx, hang); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := b.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
