package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// callerName returns the name of the caller, for the log.
func callerName(ctx context.Context) string {
	return cmp.Or(tool.Operator(ctx), tool.Principal(ctx))
}

// Cancel cancels a run: its running steps are stopped, its finally steps run. The request is logged when Cancel returns.
// Canceling a finished run is not an error. Errors are *tool.Error.
func (e *Engine) Cancel(ctx context.Context, id string) error {
	run, l, err := e.find(ctx, id)
	if err != nil || run.Status.Over() {
		return err
	}
	if l == nil {
		claimed, err := e.claims.cancel(ctx, id, callerName(ctx))
		if err != nil || !claimed {
			return err
		}
		l = e.queue.put(e.restore(run))
	}
	if err := l.stop(context.WithoutCancel(ctx), callerName(ctx)); err != nil {
		return recordError(e.log, id, err)
	}
	e.queue.startNext()
	return l.waitStarted(ctx)
}

// waitStarted waits until the interpreter of a run has started, or returns why it will not.
func (l *live) waitStarted(ctx context.Context) error {
	for {
		_, changed, left := l.state.snapshot()
		if left != nil {
			return left
		}
		select {
		case <-l.began:
			return nil
		case <-changed:
		case <-ctx.Done():
			return tool.AsError(context.Cause(ctx))
		}
	}
}

// Resume continues a failed or canceled run: failed steps run again, successful ones do not. A run that no engine has is
// continued where it stopped. Errors are *tool.Error.
func (e *Engine) Resume(ctx context.Context, id string) (Run, error) {
	run, l, err := e.find(ctx, id)
	switch {
	case err != nil:
		return Run{}, err
	case l != nil && !run.Status.Over():
		return run, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("cannot resume run %s: it is %s", id, run.Status)}
	case run.Status == OK:
		return run, &tool.Error{Kind: tool.Invalid, Message: "cannot resume run " + id + ": it succeeded", Hint: "replay it from a step, or start another run"}
	}
	if l != nil { // its end is being recorded
		select {
		case <-l.ended:
		case <-ctx.Done():
			return run, tool.AsError(context.Cause(ctx))
		}
	}
	if err := e.claims.claim(ctx, id); err != nil {
		return run, err
	}
	next := e.restore(run)
	next.skipQueue = false
	if run.Status.Over() {
		if err := e.reenter(ctx, next); err != nil {
			e.claims.release(id)
			return run, err
		}
	}
	next.state.update(func(run *Run) { run.Status, run.Error, run.Ended = Queued, nil, time.Time{} })
	if e.queue.put(next) != next {
		return run, &tool.Error{Kind: tool.Invalid, Message: "run " + id + " is being resumed already"}
	}
	run, _, _ = next.state.snapshot()
	return run, nil
}

// reenter logs that a finished run continues.
func (e *Engine) reenter(ctx context.Context, l *live) error {
	if err := (liveRuns{e}).readLog(ctx, l); err != nil {
		return e.readError(l.id, err)
	}
	event := Event{Kind: Reentered, Time: time.Now().UTC(), By: callerName(ctx)}
	if err := l.writer.Append(context.WithoutCancel(ctx), event); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return &tool.Error{Kind: tool.Invalid, Message: "run " + l.id + " is being resumed already"}
		}
		return recordError(e.log, l.id, err)
	}
	l.history.add(event)
	return nil
}

// Replay starts a new run that reuses the results of another run up to a step, and runs everything from that step on. The step is a
// path as in [Event].Path. Errors are *tool.Error.
func (e *Engine) Replay(ctx context.Context, id, step string) (Run, error) {
	if _, _, err := e.find(ctx, id); err != nil {
		return Run{}, err
	}
	if err := e.logs.Verify(ctx, id); err != nil {
		return Run{}, e.readError(id, err)
	}
	c, err := e.cutAt(ctx, id, step)
	if err != nil {
		return Run{}, err
	}
	p, err := liveRuns{e}.programOf(c.started)
	if err != nil {
		return Run{}, err
	}
	started := c.started
	started.ID, started.Of, started.Principal, started.Trigger, started.Parent = runlog.NewID(""), id, tool.Principal(ctx), "replay", ""
	more, err := e.carriedEvents(ctx, id, c)
	if err != nil {
		return Run{}, err
	}
	return e.create(ctx, p, started, nil, more)
}

// cut is the point of a log at which a replay begins.
type cut struct {
	started Started
	at      int             // the number of the first event that is not reused
	ended   map[string]bool // by path: whether a step ended before it, and successfully
}

// cutAt returns the cut at the first event of a step.
func (e *Engine) cutAt(ctx context.Context, id, step string) (cut, error) {
	c := cut{ended: map[string]bool{}}
	var names []string
	for event, err := range e.logs.Read(ctx, id, 0) {
		if err != nil {
			return c, e.readError(id, err)
		}
		if event.Kind == Created {
			c.started = *event.Start
		}
		if inside(event.Path, step) {
			c.at = event.N
			return c, nil
		}
		if event.Path != "" && !strings.ContainsAny(event.Path, ".[") && !slices.Contains(names, event.Path) {
			names = append(names, event.Path)
		}
		if event.Kind == Ended {
			c.ended[event.Path] = succeeded(event)
		}
	}
	return c, &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("run %s has no step %s", id, sanitize.Line(step, 100)), Hint: "its steps are " + strings.Join(names, ", ")}
}

// inside reports whether path is the path of step or of something nested in it.
func inside(path, step string) bool {
	rest, ok := strings.CutPrefix(path, step)
	return ok && step != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func succeeded(e Event) bool {
	return e.Outcome == outcomeOK || e.Outcome == outcomeSkipped || e.Outcome == outcomeCached
}

// maxCarried limits the events that a replay copies, in bytes.
const maxCarried = 32 << 20

// carriedEvents returns the events that a replay copies from a run.
func (e *Engine) carriedEvents(ctx context.Context, id string, c cut) (list []Event, err error) {
	var size int64
	for event, err := range e.logs.Read(ctx, id, 0) {
		if err != nil {
			return nil, e.readError(id, err)
		}
		if event.N >= c.at {
			break
		}
		if !c.includes(event) {
			continue
		}
		event.N = 0
		if size += sizeOf(event); size > maxCarried {
			return nil, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("the events before that step exceed %d MiB", maxCarried>>20), Hint: "replay from an earlier step, or start another run"}
		}
		list = append(list, event)
	}
	return list, nil
}

// includes reports whether an event is copied: successful ends, and the starts of successful steps and of blocks that had not ended.
func (c cut) includes(e Event) bool {
	switch e.Kind {
	case Ended:
		return c.ended[e.Path] && succeeded(e)
	case Began:
		return c.ended[e.Path] || e.Input == nil && e.Execution == ""
	}
	return false
}
