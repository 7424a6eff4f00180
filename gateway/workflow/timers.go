package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"sallyport/internal/store"
)

// alarm has the store wake a run at a time, so that it continues also if its engine has lost it by then. What is
// soon needs none. Call off when it is not needed any more.
func (e *Engine) alarm(ctx context.Context, run, path string, at time.Time) (off func()) {
	if time.Until(at) < longRest {
		return func() {}
	}
	sum := sha256.Sum256([]byte(path))
	key := store.Key{run, hex.EncodeToString(sum[:8])}
	if err := e.timers.At(context.WithoutCancel(ctx), key, at, nil); err != nil {
		e.log.Warn("alarm of a run cannot be set", "run", run, "error", err)
	}
	return func() {
		if hardOf(ctx).Err() != nil || time.Until(at) <= 0 { // it is to wake who goes on, or has rung
			return
		}
		if err := e.timers.Remove(context.WithoutCancel(ctx), key); err != nil {
			e.log.Warn("alarm of a run is not taken back", "run", run, "error", err)
		}
	}
}

// wake continues runs that are due and have no engine.
func (e *Engine) wake() {
	<-e.queue.known
	err := e.timers.Fired(e.base, func(f store.Firing) error {
		if len(f.Key) == 0 || e.queue.get(f.Key[0]) != nil {
			return nil
		}
		run, err := e.logs.Summary(e.base, f.Key[0])
		if err == nil && !run.Status.Over() {
			e.queue.put(e.left(run))
		}
		return nil
	})
	if e.base.Err() == nil {
		e.log.Error("alarms of runs are not heard", "error", err)
	}
}
