package workflow

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// mine reports whether the caller may see a run.
func mine(ctx context.Context, run Run) bool {
	return tool.Operator(ctx) != "" || run.Principal == tool.Principal(ctx)
}

func noRun(id string) error {
	return &tool.Error{Kind: tool.NotFound, Message: "there is no run " + sanitize.Line(id, 60), Hint: "`sallyport workflow runs` lists them"}
}

// find returns a run of the caller, from where it is now. The live is nil where this engine does not have it.
func (e *Engine) find(ctx context.Context, id string) (Run, *live, error) {
	if err := e.ready(ctx); err != nil {
		return Run{}, nil, err
	}
	l := e.queue.get(id)
	var run Run
	var err error
	if l != nil {
		run, _, _ = l.state.now()
	} else {
		run, err = e.logs.Summary(ctx, id)
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid), err == nil && !mine(ctx, run):
		return Run{}, nil, noRun(id)
	case err != nil:
		return Run{}, nil, e.unread(id, err)
	}
	return run, l, nil
}

func (e *Engine) unread(id string, err error) error {
	e.log.Error("run cannot be read", "run", sanitize.Line(id, 60), "error", err)
	if errors.Is(err, store.ErrCorrupt) && id != "" {
		return &tool.Error{Kind: tool.Internal, Message: "events of run " + sanitize.Line(id, 60) + " may be damaged", Hint: "`sallyport doctor` says what is lost; start another run", Err: err}
	}
	return &tool.Error{Kind: tool.Internal, Message: "run " + sanitize.Line(id, 60) + " cannot be read", Hint: "the operator's log says why", Err: err}
}

// stored returns a run as the store has it, with its inputs and outputs.
func (e *Engine) stored(ctx context.Context, id string) (Run, error) {
	run, l, err := e.find(ctx, id)
	if err != nil || l != nil && run.Inputs != nil {
		return run, err
	}
	for event, err := range e.logs.Read(ctx, id, 0) {
		if err != nil {
			return run, e.unread(id, err)
		}
		if event.Start != nil {
			run.Inputs = event.Start.Inputs
		}
		break // the first says it
	}
	switch last, err := e.logs.Last(ctx, id); {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return run, e.unread(id, err)
	case last.Kind == Over:
		run.Outputs, run.Error = last.Output, last.Error
	}
	return run, nil
}

// Run returns a run of the caller as it stands, of anybody for an operator. Errors are *tool.Error.
func (e *Engine) Run(ctx context.Context, id string) (Run, error) { return e.stored(ctx, id) }

// Runs returns those of the caller, or any for an operator, the newest first, without their inputs and outputs. Errors are *tool.Error.
func (e *Engine) Runs(ctx context.Context, f Filter) ([]Run, error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	var list []Run
	for run, err := range e.logs.Summaries(ctx) {
		if err != nil {
			return nil, e.unread("", err)
		}
		if l := e.queue.get(run.ID); l != nil {
			run, _, _ = l.state.now()
			run.Inputs, run.Outputs = nil, nil
		}
		if mine(ctx, run) && (f.Workflow == "" || run.Workflow == f.Workflow) && (f.Status == "" || run.Status == f.Status) {
			list = append(list, run)
		}
	}
	slices.SortFunc(list, func(a, b Run) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID)) })
	if f.Limit > 0 && len(list) > f.Limit {
		list = list[:f.Limit]
	}
	return list, nil
}

// Wait returns a run when it is over; when ctx ends before, with its error. Errors are *tool.Error.
func (e *Engine) Wait(ctx context.Context, id string) (Run, error) {
	return e.until(ctx, id, func(run Run) bool { return run.Status.Over() })
}

// Settled returns a run when it is over, or waits only for a person. Errors are *tool.Error.
func (e *Engine) Settled(ctx context.Context, id string) (Run, error) {
	return e.until(ctx, id, func(run Run) bool { return run.Status.Over() || run.Status == Waiting && forPerson(run) })
}

func (e *Engine) until(ctx context.Context, id string, enough func(Run) bool) (Run, error) {
	run, l, err := e.find(ctx, id)
	if err != nil || l == nil {
		if err == nil && !run.Status.Over() {
			return run, &tool.Error{Kind: tool.Invalid, Message: "run " + run.ID + " does not go on here", Hint: "sallyport workflow resume " + run.ID}
		}
		if err != nil {
			return run, err
		}
		return e.stored(ctx, id)
	}
	for {
		run, changed, left := l.state.now()
		if enough(run) {
			return run, nil
		}
		if left != nil {
			return run, left
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return run, tool.AsError(context.Cause(ctx))
		}
	}
}

// Events walks over the events of a run with numbers (from 1) above after. The walk ends at the first error, a *tool.Error.
func (e *Engine) Events(ctx context.Context, id string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if _, _, err := e.find(ctx, id); err != nil {
			yield(Event{}, err)
			return
		}
		for event, err := range e.logs.Read(ctx, id, after) {
			if err != nil {
				yield(Event{}, e.unread(id, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// errOver ends the following of a run.
var errOver = errors.New("the run is over")

// Follow calls do with what Events would yield and then with each event as it comes, until the run is over, ctx ends or do fails.
func (e *Engine) Follow(ctx context.Context, id string, after int, do func(Event) error) error {
	run, _, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	if run.Status.Over() {
		for event, err := range e.Events(ctx, id, after) {
			if err == nil {
				err = do(event)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = e.logs.Follow(ctx, id, after, func(event Event) error {
		err := do(event)
		if err == nil && event.Kind == Over {
			return errOver
		}
		return err
	})
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}
