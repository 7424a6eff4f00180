package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// finalTime is how long what stands in finally may take after a run was stopped.
	finalTime = 30 * time.Second
)

// errGone ends what a run does without a word in its log: the engine closes, or the log cannot be written. It continues from there when it is entered again.
var errGone = errors.New("the run is not ours any more")

// failure is the end of a step or a run that did not go well.
type failure struct {
	fault    Fault
	canceled bool
}

// Error says what went wrong.
func (f *failure) Error() string { return f.fault.Message }

func (f *failure) outcome() string {
	if f.canceled {
		return outcomeCanceled
	}
	return outcomeFailed
}

// run is a run while this engine has it: the interpreter of its definition.
type run struct {
	engine  *Engine
	id      string
	program *program
	started Started
	history *pastRun // of before it was entered
	entry   int      // how often it was resumed
	peer    tool.Peer
	log     *journal
	read    *origins
	steps   atomic.Int64
	meter   *meter
	// programs has the last execution of each step, by path, that this engine has begun.
	programs sync.Map

	stop context.CancelCauseFunc // cancels it

	state *state
	desk  desk
}

// spot is where in a run a step is, and what the log says of it.
type spot struct {
	path string
	past *past
}

func (p spot) in(name string) spot {
	if p.path == "" {
		return spot{name, p.past.in(name)}
	}
	return spot{p.path + "." + name, p.past.in(name)}
}

func (p spot) pass(i int) spot { return spot{p.path + index(i), p.past.in(index(i))} }

// anew is the place for another attempt, which starts from the beginning.
func (p spot) anew() spot { return spot{p.path, nil} }

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// interpret runs the definition from its top. What the log says has ended is not run again.
func (r *run) interpret(ctx context.Context, h *pastRun) (json.RawMessage, error) {
	inner, end := r.limited(ctx, h.used)
	defer end()
	vars, err := r.vars(h)
	if err != nil {
		return nil, r.failed(ctx, inner, "", 0, err)
	}
	f := newFrame(vars, []string{r.started.Workflow})
	if _, err = r.sequence(inner, f, r.program.steps, spot{"", &h.root}); err != nil {
		return nil, r.failed(ctx, inner, "", 0, err)
	}
	out, err := r.outputs(ctx, f, r.program)
	if err != nil {
		return nil, r.failed(ctx, ctx, "", 0, err)
	}
	return encode(out, maxOutput)
}

// limited returns a context that ends when the run has used up a limit, its own timeout too.
func (r *run) limited(ctx context.Context, used time.Duration) (_ context.Context, end func()) {
	inner, cancel := context.WithCancelCause(ctx)
	r.meter.open(cancel)
	limit := r.meter.limits.Time
	why := r.meter.limits.timedOut()
	if own := r.program.Timeout; own > 0 && own < limit {
		limit, why = own, tookLonger(own)
	}
	timed, stop := bounded(inner, max(limit-used, time.Millisecond), why)
	return timed, func() {
		stop()
		cancel(nil)
	}
}

// vars are the variables that all expressions see.
func (r *run) vars(h *pastRun) (map[string]any, error) {
	inputs, err := decode(r.started.Inputs)
	env, err2 := decode(r.started.Env)
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	return map[string]any{
		"inputs": orEmpty(inputs), "env": orEmpty(env),
		"run": map[string]any{"id": r.id, "workflow": r.started.Workflow, "started": h.created.UTC().Format(time.RFC3339), "trigger": r.started.Trigger},
	}, nil
}

func orEmpty(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}

// sequence runs steps one after the other; its result is that of the last step that was not skipped.
func (r *run) sequence(ctx context.Context, f *frame, steps []*node, at spot) (any, error) {
	var last any
	for _, n := range steps {
		out, err := r.step(ctx, f, n, at.in(n.ID.Text))
		if err != nil {
			return nil, err
		}
		f.put(n.ID.Text, out)
		if out.status != outcomeSkipped {
			last = out.value
		}
	}
	return last, nil
}

// stopped returns the error for what has not begun where the run was stopped, nil where it continues.
func (r *run) stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errGone) {
		return errGone
	}
	return cause
}

// failed makes a failure of an error that came up at a place. Where inner has ended and outer has not, its cause is why;
// where both have, the step was canceled.
func (r *run) failed(outer, inner context.Context, path string, line int, err error) error {
	if errors.Is(err, errGone) || errors.Is(context.Cause(outer), errGone) {
		return errGone
	}
	if cause := context.Cause(outer); cause != nil {
		return &failure{faultOf(cause, path, line), true}
	}
	f, known := errors.AsType[*failure](err)
	if cause := context.Cause(inner); cause != nil {
		if known && path == "" { // it was the run's time
			path, line = f.fault.Step, f.fault.Line
		}
		return &failure{fault: faultOf(cause, path, line)}
	}
	if known {
		return f
	}
	if e := tool.AsError(err); e.Kind == tool.Internal && e.Err != nil {
		r.engine.log.Error("step of a run failed", "run", r.id, "step", path, "error", e.Err)
	}
	return &failure{fault: faultOf(err, path, line)}
}

const (
	maxFault = 2000
	maxHint  = 500
)

// faultOf words an error for people and models. What upstreams say is made plain.
func faultOf(err error, path string, line int) Fault {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.fault
	}
	e := tool.AsError(err)
	return Fault{Kind: e.Kind, Message: sanitize.Text(e.Message, maxFault), Hint: sanitize.Text(e.Hint, maxHint), Step: path, Line: line, Retryable: e.Retryable}
}

func tookLonger(limit time.Duration) error {
	return &tool.Error{Kind: tool.Timeout, Message: fmt.Sprintf("took longer than %v", limit)}
}

func canceledBy(who string) error {
	if who != "" {
		who = " by " + sanitize.Line(who, 100)
	}
	return &tool.Error{Kind: tool.Canceled, Message: "canceled" + who}
}

// detached returns a context for what must be done after ctx has ended; it ends when the run is given up, and after a time.
func (r *run) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	bare, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	hard := hardOf(ctx)
	undo := context.AfterFunc(hard, func() { cancel(context.Cause(hard)) })
	timer := time.AfterFunc(finalTime, func() { cancel(tookLonger(finalTime)) })
	return bare, func() {
		undo()
		timer.Stop()
		cancel(nil)
	}
}

type hardKey struct{}

// withHard keeps in a context the one that ends only when the run is given up.
func withHard(ctx context.Context) context.Context { return context.WithValue(ctx, hardKey{}, ctx) }

func hardOf(ctx context.Context) context.Context {
	hard, _ := ctx.Value(hardKey{}).(context.Context)
	return hard
}

// journal writes a run's events, in the order in which they come. What can wait goes with the next that cannot.
type journal struct {
	writer *runlog.Writer
	meter  *meter
	lost   func(error) // called once, when an event could not be written

	mu      sync.Mutex
	settled sync.Cond
	queue   []Event
	queued  int // how many have come, in all
	written int // how many of them are on the disk
	writing bool
	err     error
}

func newJournal(w *runlog.Writer, m *meter, lost func(error)) *journal {
	j := &journal{writer: w, meter: m, lost: lost}
	j.settled.L = &j.mu
	return j
}

// note adds an event that can be derived again from those that are there: it is written with the next.
func (j *journal) note(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
}

func (j *journal) add(e Event) {
	e.Time = time.Now().UTC()
	j.queue = append(j.queue, e)
	j.meter.wrote(e)
	j.queued++
}

// write adds an event, and returns when it and all before it are on the disk.
func (j *journal) write(ctx context.Context, e Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
	for mine := j.queued; j.written < mine && j.err == nil; {
		if j.writing {
			j.settled.Wait()
			continue
		}
		j.flush(ctx)
	}
	return j.err
}

// flush writes what is queued. It is called with mu held.
func (j *journal) flush(ctx context.Context) {
	batch := j.queue
	j.queue, j.writing = nil, true
	j.mu.Unlock()
	err := j.writer.Append(context.WithoutCancel(ctx), batch...)
	j.mu.Lock()
	j.writing = false
	if err != nil && j.err == nil {
		j.err = errGone
		j.lost(err)
	}
	j.written += len(batch)
	j.settled.Broadcast()
}

// sizeOf is about how much room an event takes.
func sizeOf(e Event) int64 { return int64(200 + len(e.Path) + len(e.Input) + len(e.Output)) }
