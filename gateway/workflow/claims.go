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
	// cancelTimeout is how long a run of another gateway may take to be canceled: longer than until a gateway that has died counts as dead.
	// askTimeout bounds one request for it.
	cancelTimeout = 30 * time.Second
	askTimeout    = 3 * time.Second
)

// runKey is the key of the claim of a run.
func runKey(id string) store.Key { return store.Key{id} }

// runClaims are the claims of the runs of one engine.
type runClaims struct {
	*store.Claims
	// cancels are requests to the gateway that has a run to cancel it.
	cancels *store.Requests
	base    context.Context //nolint:containedctx // that of the engine
	log     *slog.Logger
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

// cancel has the gateway that has a run cancel it, on behalf of a person. If no living gateway has the run, it is claimed for this one.
// Errors are *tool.Error.
func (c runClaims) cancel(ctx context.Context, id, by string) (claimed bool, err error) {
	ctx, end := context.WithTimeout(ctx, cancelTimeout)
	defer end()
	for {
		err := c.claim(ctx, id)
		if _, held := errors.AsType[*store.HeldError](err); !held {
			return err == nil, err
		}
		switch asked := c.ask(ctx, id, by); {
		case asked == nil:
			return false, nil
		case ctx.Err() != nil:
			return false, err
		case !errors.Is(asked, context.DeadlineExceeded):
			return false, recordError(c.log, id, asked)
		}
	}
}

func (c runClaims) ask(ctx context.Context, id, by string) error {
	ctx, end := context.WithTimeout(ctx, askTimeout)
	defer end()
	return c.cancels.Ask(ctx, runKey(id), []byte(by))
}

// serveCancel cancels a run of this gateway, as another one asks. It reports whether the gateway has the run.
func serveCancel(e *Engine, key store.Key, by string) bool {
	l := e.queue.get(key[0])
	if l == nil || len(key) != 1 {
		return false
	}
	if err := l.stop(context.WithoutCancel(e.base), by); err != nil {
		e.log.Warn("a run is not canceled", "run", l.id, "error", err)
		return false
	}
	e.queue.startNext()
	return true
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
