package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// liveRuns runs the runs of this process.
type liveRuns struct{ *Engine }

// run executes a run until it ends or the engine closes.
func (e liveRuns) run(l *live) {
	defer close(l.ended)
	defer e.queue.remove(l)
	defer e.claims.release(l.id)
	hard, abandon := context.WithCancelCause(e.base)
	defer abandon(nil)
	r, err := e.claim(hard, l, abandon)
	if err == nil {
		err = r.runInSpan(r.context(hard), l)
	}
	if err != nil {
		e.release(l, err)
	}
}

// release records that this engine gives up a run that has not ended.
func (e liveRuns) release(l *live, err error) {
	if e.base.Err() == nil {
		e.log.Error("run is not continued", "run", l.id, "error", err)
	}
	if errors.Is(err, store.ErrCorrupt) { // no other engine can continue it either
		fault := &Fault{Kind: tool.Internal, Message: "events of the run may be damaged, so it is not continued", Hint: "`sallyport doctor` says what is lost; start another run"}
		l.state.update(func(run *Run) { run.Status, run.Error, run.Ended, run.Waiting = Failed, fault, time.Now().UTC(), nil })
	}
	l.state.release(&tool.Error{Kind: tool.Canceled, Message: "run " + l.id + " is not continued here", Hint: "it continues at the next start of the gateway, or with `sallyport workflow resume " + l.id + "`", Err: err})
}

// claim claims a run. It reads the log first if needed.
func (e liveRuns) claim(ctx context.Context, l *live, abandon context.CancelCauseFunc) (*run, error) {
	if l.writer == nil {
		if err := e.readLog(ctx, l); err != nil {
			return nil, err
		}
	}
	h := l.history
	r := &run{engine: e.Engine, id: l.id, program: l.program, started: h.started, resumes: h.resumes, peer: l.peer, state: l.state}
	r.read = &origins{labels: e.opts.Labels}
	r.steps.Store(int64(h.steps))
	r.meter = &meter{limits: e.opts.Limits, parent: e.meterOf(h.started.Parent)}
	r.meter.restore(h)
	r.log = newJournal(l.writer, r.meter, func(err error) {
		e.log.Error("run cannot be recorded", "run", l.id, "error", err)
		abandon(errReleased)
	})
	r.history = h
	l.state.update(func(run *Run) { run.Inputs, run.Steps = h.started.Inputs, h.steps })
	if h.over != nil { // it had ended, and its summary was not updated
		return r, nil
	}
	return r, r.log.write(ctx, Event{Kind: Claimed, By: e.owner})
}

// meterOf returns the meter of a run in this engine, nil for none.
func (e liveRuns) meterOf(id string) *meter {
	l := e.queue.get(id)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return nil
	}
	return l.run.meter
}

// readLog reads the history and the definition of a run from its log.
func (e liveRuns) readLog(ctx context.Context, l *live) error {
	h := newRunHistory()
	w, err := e.logs.OpenWriter(ctx, l.id, func(event Event) error {
		h.add(event)
		return nil
	})
	if err != nil {
		return err
	}
	l.writer, l.history = w, h
	if l.program == nil {
		l.program, l.broken = e.programOf(h.started)
	}
	return nil
}

// programOf returns the program of a run or nested workflow, from its logged definition.
func (e liveRuns) programOf(s Started) (*program, error) {
	d, err := parse(s)
	if err != nil { // an older version accepted it
		return nil, &tool.Error{Kind: tool.Invalid, Message: "the definition of the run cannot be read any more: " + err.Error(), Hint: "start another run"}
	}
	return e.programs.get(d)
}

// parse parses the definition of a run, as it was at the start.
func parse(s Started) (*spec.Definition, error) {
	return spec.Parse(s.Path, []byte(s.Source), func(name string) ([]byte, error) {
		text, ok := s.Files[name]
		if !ok {
			return nil, errors.New("the run has no file " + name)
		}
		return []byte(text), nil
	})
}

// context returns the context of everything that the run does.
func (r *run) context(hard context.Context) context.Context {
	ctx := withLifetime(identity(hard, r.started))
	r.read.recall(ctx, r.history.labels)
	return ctx
}

// finish interprets the run and logs its end.
func (r *run) finish(ctx context.Context, l *live) error {
	end := r.history.over
	if end == nil {
		out, err := json.RawMessage(nil), l.broken
		if err == nil {
			out, err = r.begin(ctx, l)
		}
		if errors.Is(err, errReleased) || ctx.Err() != nil {
			return errReleased
		}
		end = ending(out, err)
		end.Time = time.Now().UTC()
		if err := r.log.write(ctx, *end); err != nil {
			return err
		}
		r.engine.opts.Telemetry.RecordRun(ctx, string(end.Status), end.Time.Sub(r.history.created))
	}
	r.state.update(func(run *Run) {
		run.Status, run.Outputs, run.Error, run.Ended, run.Waiting = end.Status, end.Output, end.Error, end.Time, nil
	})
	return nil
}

// begin makes a run cancelable and interprets it.
func (r *run) begin(ctx context.Context, l *live) (json.RawMessage, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	if r.history.stopping {
		stop(cancelError(r.history.stoppedBy))
	}
	if err := l.attach(ctx, r); err != nil {
		return nil, err
	}
	r.state.update(func(run *Run) {
		r.state.active = 1
		run.Status = Running
	})
	return r.interpret(ctx, r.history)
}

// cancel logs the request to cancel and stops the run.
func (r *run) cancel(ctx context.Context, by string) error {
	err := r.log.write(ctx, Event{Kind: Stopping, By: by})
	r.stop(cancelError(by))
	return err
}

// ending returns the last event of a run.
func ending(out json.RawMessage, err error) *Event {
	if err == nil {
		return &Event{Kind: Over, Status: OK, Output: out}
	}
	f := &failure{fault: faultOf(err, "", 0)}
	if known, ok := errors.AsType[*failure](err); ok {
		f = known
	}
	if f.canceled {
		return &Event{Kind: Over, Status: Canceled, Error: &f.fault}
	}
	return &Event{Kind: Over, Status: Failed, Error: &f.fault}
}
