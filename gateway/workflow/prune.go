package workflow

import "time"

// pruneEvery is how often runs go that have been over for long.
const pruneEvery = 6 * time.Hour

// prune forgets runs that have been over for as long as they are kept.
func (e *Engine) prune() {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		switch removed, err := e.logs.Prune(e.base); {
		case e.base.Err() != nil:
			return
		case err != nil:
			e.log.Warn("old runs are not removed", "error", err)
		case removed > 0:
			e.log.Info("old runs are removed", "runs", removed)
		}
		select {
		case <-tick.C:
		case <-e.base.Done():
			return
		}
	}
}
