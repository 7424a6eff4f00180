package workflow

import "time"

// pruneEvery is the interval at which old runs are removed.
const pruneEvery = 6 * time.Hour

// prune removes runs after their retention, until the engine closes.
func (e *Engine) prune() {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		switch removed, err := e.logs.Prune(e.base); {
		case e.base.Err() != nil:
			return
		case err != nil:
			e.log.Warn("cannot remove old runs", "error", err)
		case removed > 0:
			e.log.Info("removed old runs", "runs", removed)
		}
		select {
		case <-tick.C:
		case <-e.base.Done():
			return
		}
	}
}
