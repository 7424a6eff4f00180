package workflow

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sallyport/internal/sleep"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

const (
	// adoptEvery is how often an engine looks for runs of gateways that have died.
	adoptEvery = 5 * time.Second
	// claimGrace is how long a run of this engine may be claimed and not in the queue, as it is being started.
	claimGrace = 30 * time.Second
	// releaseTimeout is the timeout of giving up a claim.
	releaseTimeout = 5 * time.Second
)

// runKey is the key of the claim of a run.
func runKey(id string) store.Key { return store.Key{id} }

// runClaims are the claims of the runs of one engine.
type runClaims struct {
	*store.Claims
	base context.Context //nolint:containedctx // that of the engine
	log  *slog.Logger
}

// claim claims a run for this gateway. Errors are *tool.Error.
func (c runClaims) claim(ctx context.Context, id string) error {
	err := c.Take(ctx, runKey(id))
	if err == nil {
		return nil
	}
	if held, ok := errors.AsType[*store.HeldError](err); ok {
		return &tool.Error{Kind: tool.Failed, Message: "run " + id + " is active on another gateway: " + held.By.String(), Hint: "send the request to that gateway", Err: err}
	}
	return recordError(c.log, id, err)
}

// mayContinue claims a run if no living gateway has it.
func (c runClaims) mayContinue(id string) bool {
	err := c.Take(c.base, runKey(id))
	if _, held := errors.AsType[*store.HeldError](err); err != nil && !held && c.base.Err() == nil {
		c.log.Warn("cannot claim a run", "run", id, "error", err)
	}
	return err == nil
}

// release gives up the claim of a run that has ended, or that another gateway may continue.
func (c runClaims) release(id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.base), releaseTimeout)
	defer cancel()
	if err := c.Release(ctx, runKey(id)); err != nil {
		c.log.Warn("cannot give up a run", "run", id, "error", err)
	}
}

// adoptRuns continues runs of gateways that have died or stopped, and runs that this engine gave up because the store did
// not answer.
func (e *Engine) adoptRuns() {
	<-e.queue.loaded
	for sleep.For(e.base, adoptEvery) == nil {
		if e.opts.Records.Available() != nil {
			continue
		}
		for run, err := range e.logs.Summaries(e.base) {
			if err != nil {
				e.log.Warn("cannot look for runs of other gateways", "error", err)
				break
			}
			e.adopt(run)
		}
	}
}

func (e *Engine) adopt(run Run) {
	own := e.claims.TakenFor(runKey(run.ID))
	if run.Status.Over() || e.queue.get(run.ID) != nil || own > 0 && own < claimGrace || !e.claims.mayContinue(run.ID) {
		return
	}
	run, err := e.logs.Summary(e.base, run.ID) // it may have ended since
	if err != nil || run.Status.Over() || !e.begun(run.ID) {
		e.claims.release(run.ID)
		return
	}
	if l := e.restore(run); e.queue.put(l) == l {
		e.log.Info("a run is continued here", "run", run.ID, "workflow", run.Workflow)
	}
}
