package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"sallyport/internal/store"
)

// setTimer sets a stored timer for a run, so that the run continues even if its engine is gone by then. Short
// waits need none. off removes the timer.
func (e *Engine) setTimer(ctx context.Context, run, path string, at time.Time) (off func()) {
	if time.Until(at) < longDelay {
		return func() {}
	}
	sum := sha256.Sum256([]byte(path))
	key := store.Key{run, hex.EncodeToString(sum[:8])}
	if err := e.timers.At(context.WithoutCancel(ctx), key, at, nil); err != nil {
		e.log.Warn("cannot set the timer of a run", "run", run, "error", err)
	}
	return func() {
		if lifetimeOf(ctx).Err() != nil || time.Until(at) <= 0 { // it is for the next engine, or has fired
			return
		}
		if err := e.timers.Remove(context.WithoutCancel(ctx), key); err != nil {
			e.log.Warn("cannot remove the timer of a run", "run", run, "error", err)
		}
	}
}

// watchTimers continues runs that are not in the queue when their timers fire.
func (e *Engine) watchTimers() {
	<-e.queue.loaded
	err := e.opts.Records.Lead(e.base, "run_timers", func(ctx context.Context) error {
		return e.timers.Listen(ctx, func(f store.Firing) error {
			if len(f.Key) == 0 || e.queue.get(f.Key[0]) != nil {
				return nil
			}
			run, err := e.logs.Summary(ctx, f.Key[0])
			if err == nil && !run.Status.Over() && e.claims.mayContinue(run.ID) {
				e.queue.put(e.restore(run))
			}
			return nil
		})
	})
	if e.base.Err() == nil {
		e.log.Error("cannot receive the timers of runs", "error", err)
	}
}
