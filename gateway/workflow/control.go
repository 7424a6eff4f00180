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

// asker names the caller, for the record.
func asker(ctx context.Context) string {
	return cmp.Or(tool.Operator(ctx), tool.Principal(ctx))
}

// Cancel stops a run: its steps under way are stopped, what stands in finally runs. That it is to be is on record when Cancel returns.
// One that is over already is no error. Errors are *tool.Error.
func (e *Engine) Cancel(ctx context.Context, id string) error {
	run, l, err := e.find(ctx, id)
	if err != nil || run.Status.Over() {
		return err
	}
	if l == nil {
		l = e.queue.put(e.left(run))
	}
	if err := l.stop(context.WithoutCancel(ctx), asker(ctx)); err != nil {
		return e.unkept(id, err)
	}
	e.queue.settle()
	return l.underWay(ctx)
}

// underWay waits until a run is interpreted, or will never be.
func (l *live) underWay(ctx context.Context) error {
	for {
		_, changed, left := l.state.now()
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

// Resume continues with a run that has failed or was canceled: what had failed is made again, what had ended is not. One without an engine is
// continued as it is. Errors are *tool.Error.
func (e *Engine) Resume(ctx context.Context, id string) (Run, error) {
	run, l, err := e.find(ctx, id)
	switch {
	case err != nil:
		return Run{}, err
	case l != nil && !run.Status.Over():
		return run, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("cannot resume run %s: it is %s", id, run.Status)}
	case run.Status == OK:
		return run, &tool.Error{Kind: tool.Invalid, Message: "cannot resume run " + id + ": it ended well", Hint: "replay it from a step, or start another"}
	}
	if l != nil { // its end is just being noted
		select {
		case <-l.ended:
		case <-ctx.Done():
			return run, tool.AsError(context.Cause(ctx))
		}
	}
	next := e.left(run)
	next.first = false
	if run.Status.Over() {
		if err := e.reenter(ctx, next); err != nil {
			return run, err
		}
	}
	next.state.alter(func(run *Run) { run.Status, run.Error, run.Ended = Queued, nil, time.Time{} })
	if e.queue.put(next) != next {
		return run, &tool.Error{Kind: tool.Invalid, Message: "run " + id + " is being resumed already"}
	}
	run, _, _ = next.state.now()
	return run, nil
}

// reenter notes that a run that was over continues.
func (e *Engine) reenter(ctx context.Context, l *live) error {
	if err := (liveRuns{e}).readLog(ctx, l); err != nil {
		return e.unread(l.id, err)
	}
	event := Event{Kind: Reentered, Time: time.Now().UTC(), By: asker(ctx)}
	if err := l.writer.Append(context.WithoutCancel(ctx), event); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return &tool.Error{Kind: tool.Invalid, Message: "run " + l.id + " is being resumed already"}
		}
		return e.unkept(l.id, err)
	}
	l.history.add(event)
	return nil
}

// Replay starts a new run that takes over what had ended in another before a step of it began, and does all from there. The step is a
// path as events have it. Errors are *tool.Error.
func (e *Engine) Replay(ctx context.Context, id, step string) (Run, error) {
	if _, _, err := e.find(ctx, id); err != nil {
		return Run{}, err
	}
	if err := e.logs.Sound(ctx, id); err != nil {
		return Run{}, e.unread(id, err)
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
	more, err := e.takenOver(ctx, id, c)
	if err != nil {
		return Run{}, err
	}
	return e.create(ctx, p, started, nil, more)
}

// cut is where a replay begins.
type cut struct {
	started Started
	at      int             // the number of the event at which it ends
	ended   map[string]bool // the steps that had ended well by then
}

// cutAt finds the first event of a step.
func (e *Engine) cutAt(ctx context.Context, id, step string) (cut, error) {
	c := cut{ended: map[string]bool{}}
	var names []string
	for event, err := range e.logs.Read(ctx, id, 0) {
		if err != nil {
			return c, e.unread(id, err)
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
			c.ended[event.Path] = wentWell(event)
		}
	}
	return c, &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("run %s has made no step %s", id, sanitize.Line(step, 100)), Hint: "its steps are " + strings.Join(names, ", ")}
}

// inside reports whether a path is that of a step, or of something within it.
func inside(path, step string) bool {
	rest, ok := strings.CutPrefix(path, step)
	return ok && step != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func wentWell(e Event) bool {
	return e.Outcome == outcomeOK || e.Outcome == outcomeSkipped || e.Outcome == outcomeCached
}

// maxTakenOver is how much of a run a replay takes over, in bytes.
const maxTakenOver = 32 << 20

// takenOver are the events of a run that its replay begins with.
func (e *Engine) takenOver(ctx context.Context, id string, c cut) (list []Event, err error) {
	var size int64
	for event, err := range e.logs.Read(ctx, id, 0) {
		if err != nil {
			return nil, e.unread(id, err)
		}
		if event.N >= c.at {
			break
		}
		if !c.takes(event) {
			continue
		}
		event.N = 0
		if size += sizeOf(event); size > maxTakenOver {
			return nil, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("what had ended before that step has over %d MiB", maxTakenOver>>20), Hint: "replay from an earlier step, or start another run"}
		}
		list = append(list, event)
	}
	return list, nil
}

// takes reports whether an event is taken over: ends that went well, and how what had not ended by then began if it holds other steps.
func (c cut) takes(e Event) bool {
	switch e.Kind {
	case Ended:
		return c.ended[e.Path] && wentWell(e)
	case Began:
		return c.ended[e.Path] || e.Input == nil && e.Execution == ""
	}
	return false
}
