package workflow

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/approval"
	"sallyport/internal/sanitize"
	"sallyport/internal/sleep"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// canSee reports whether the caller may see a run.
func canSee(ctx context.Context, run Run) bool {
	return tool.Operator(ctx) != "" || run.Principal == tool.Principal(ctx)
}

func noRun(id string) error {
	return &tool.Error{Kind: tool.NotFound, Message: "there is no run " + sanitize.Line(id, 60), Hint: "`sallyport workflow runs` lists them"}
}

// find returns a run that the caller may see. The live run is nil if this engine does not have it.
func (e *Engine) find(ctx context.Context, id string) (Run, *live, error) {
	if err := e.ready(ctx); err != nil {
		return Run{}, nil, err
	}
	l := e.queue.get(id)
	var run Run
	var err error
	if l != nil {
		run, _, _ = l.state.snapshot()
	} else {
		run, err = e.logs.Summary(ctx, id)
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrInvalid), err == nil && !canSee(ctx, run):
		return Run{}, nil, noRun(id)
	case err != nil:
		return Run{}, nil, e.readError(id, err)
	}
	return run, l, nil
}

func (e *Engine) readError(id string, err error) error {
	if down := toolcall.Unavailable(err); down != nil {
		return down
	}
	e.log.Error("run cannot be read", "run", sanitize.Line(id, 60), "error", err)
	if errors.Is(err, store.ErrCorrupt) && id != "" {
		return &tool.Error{Kind: tool.Internal, Message: "events of run " + sanitize.Line(id, 60) + " may be damaged", Hint: "`sallyport doctor` says what is lost; start another run", Err: err}
	}
	return &tool.Error{Kind: tool.Internal, Message: "run " + sanitize.Line(id, 60) + " cannot be read", Hint: "the operator's log says why", Err: err}
}

// load returns a run with its inputs and outputs, which it reads from the log if needed.
func (e *Engine) load(ctx context.Context, id string) (Run, error) {
	run, l, err := e.find(ctx, id)
	if err != nil || l != nil && run.Inputs != nil {
		return run, err
	}
	for event, err := range e.logs.Read(ctx, id, 0) {
		if err != nil {
			return run, e.readError(id, err)
		}
		if event.Start != nil {
			run.Inputs = event.Start.Inputs
		}
		break // the first event has them
	}
	switch last, err := e.logs.Last(ctx, id); {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return run, e.readError(id, err)
	case last.Kind == Over:
		run.Outputs, run.Error = last.Output, last.Error
	}
	return run, nil
}

// Run returns the current state of a run of the caller, or of any run for an operator. Errors are *tool.Error.
func (e *Engine) Run(ctx context.Context, id string) (Run, error) { return e.load(ctx, id) }

// Runs returns the runs of the caller, or all for an operator, the newest first, without inputs and outputs. Errors are *tool.Error.
func (e *Engine) Runs(ctx context.Context, f Filter) ([]Run, error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	var list []Run
	for run, err := range e.logs.Summaries(ctx) {
		if err != nil {
			return nil, e.readError("", err)
		}
		if l := e.queue.get(run.ID); l != nil {
			run, _, _ = l.state.snapshot()
			run.Inputs, run.Outputs = nil, nil
		}
		if canSee(ctx, run) && (f.Workflow == "" || run.Workflow == f.Workflow) && (f.Status == "" || run.Status == f.Status) {
			list = append(list, run)
		}
	}
	slices.SortFunc(list, func(a, b Run) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID)) })
	if f.Limit > 0 && len(list) > f.Limit {
		list = list[:f.Limit]
	}
	return list, nil
}

// Wait waits until a run has ended and returns it. If ctx ends first, it returns the current state and an error. Errors are *tool.Error.
func (e *Engine) Wait(ctx context.Context, id string) (Run, error) {
	return e.waitUntil(ctx, id, func(run Run) bool { return run.Status.Over() })
}

// WaitSettled waits until a run has ended or waits for a person, and returns it. Errors are *tool.Error.
func (e *Engine) WaitSettled(ctx context.Context, id string) (Run, error) {
	return e.waitUntil(ctx, id, func(run Run) bool {
		return run.Status.Over() || run.Status == Waiting && needsPerson(run) && !e.answered(ctx, run)
	})
}

// answered reports whether an approval that the run waits for was answered: the run is about to continue.
func (e *Engine) answered(ctx context.Context, run Run) bool {
	return slices.ContainsFunc(run.Waiting, func(p Pending) bool {
		if p.Approval == "" || e.opts.Approvals == nil {
			return false
		}
		a, err := e.opts.Approvals.Approval(ctx, p.Approval)
		return err == nil && a.State != approval.Waiting
	})
}

// elsewhereInterval is how often a run of another gateway is looked at.
const elsewhereInterval = 500 * time.Millisecond

// findActive finds a run. While another gateway has it, or is about to adopt it, it waits until this one has it or the run is enough.
func findActive(ctx context.Context, e *Engine, id string, enough func(Run) bool) (Run, *live, error) {
	for {
		run, l, err := e.find(ctx, id)
		if err != nil || l != nil || run.Status.Over() || !e.opts.Records.Shared() || enough(run) {
			return run, l, err
		}
		if sleep.For(ctx, elsewhereInterval) != nil {
			return run, nil, tool.AsError(context.Cause(ctx))
		}
	}
}

func (e *Engine) waitUntil(ctx context.Context, id string, enough func(Run) bool) (Run, error) {
	run, l, err := findActive(ctx, e, id, enough)
	switch {
	case err != nil:
		return run, err
	case l == nil && run.Status.Over():
		return e.load(ctx, id)
	case l == nil && !enough(run):
		return run, &tool.Error{Kind: tool.Invalid, Message: "run " + run.ID + " is not active here", Hint: "sallyport workflow resume " + run.ID}
	case l == nil:
		return run, nil
	}
	for {
		run, changed, left := l.state.snapshot()
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

// Events iterates over the events of a run with numbers (from 1) above after. It ends at the first error, a *tool.Error.
func (e *Engine) Events(ctx context.Context, id string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if _, _, err := e.find(ctx, id); err != nil {
			yield(Event{}, err)
			return
		}
		for event, err := range e.logs.Read(ctx, id, after) {
			if err != nil {
				yield(Event{}, e.readError(id, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// errOver ends Follow at the end of a run.
var errOver = errors.New("the run is over")

// Follow calls do with the events after a number, and then with each new event, until the run ends, ctx ends or do fails.
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
