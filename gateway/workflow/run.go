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
	// finalTime limits the finally blocks of a stopped run.
	finalTime = 30 * time.Second
)

// errReleased stops a run without logging an end: the engine closes, or the log cannot be written. The run can be continued from its log.
var errReleased = errors.New("the run is no longer owned by this engine")

// failure is the error of a failed or canceled step or run.
type failure struct {
	fault    Fault
	canceled bool
	refused  bool // nothing was done, because the store of records did not answer
}

// Error returns the message of the fault.
func (f *failure) Error() string { return f.fault.Message }

func (f *failure) outcome() string {
	if f.canceled {
		return outcomeCanceled
	}
	return outcomeFailed
}

// run interprets the definition of a run in this engine.
type run struct {
	engine  *Engine
	id      string
	program *program
	started Started
	history *runHistory // from before this engine claimed it
	resumes int         // how often it was resumed
	peer    tool.Peer
	log     *journal
	read    *origins
	steps   atomic.Int64
	meter   *meter
	// programs has the executions of each code step in which this engine started one, by path: a []string, the newest last. tasks has
	// the id of each task that it started.
	programs, tasks sync.Map

	stop context.CancelCauseFunc // cancels it

	state     *state
	openForms formRegistry
}

// location is the location of a step in a run, and its history from the log.
type location struct {
	path    string
	history *stepHistory
}

func (p location) child(name string) location {
	if p.path == "" {
		return location{name, p.history.child(name)}
	}
	return location{p.path + "." + name, p.history.child(name)}
}

func (p location) iteration(i int) location {
	return location{p.path + index(i), p.history.child(index(i))}
}

// forRetry returns the location for a retry, which has no history but for the executions before it.
func (r *run) forRetry(at location) location {
	r.keepExecutions(at)
	return location{at.path, nil}
}

// keepExecutions stores the executions of a step and of the steps in it: after a restart they are only in the log.
func (r *run) keepExecutions(at location) {
	if at.history == nil {
		return
	}
	if all := at.history.allExecutions(); len(all) > 0 {
		r.programs.LoadOrStore(at.path, all)
	}
	for name, inner := range at.history.children {
		if name[0] != '[' { // an iteration
			name = "." + name
		}
		r.keepExecutions(location{at.path + name, inner})
	}
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// interpret runs the definition from its first step. Steps that have ended in the log are not repeated.
func (r *run) interpret(ctx context.Context, h *runHistory) (json.RawMessage, error) {
	inner, end := r.withLimits(ctx, h.used)
	defer end()
	vars, err := r.vars(h)
	if err != nil {
		return nil, r.newFailure(ctx, inner, "", 0, err)
	}
	f := newFrame(vars, []string{r.started.Workflow})
	if _, err = r.sequence(inner, f, r.program.steps, location{"", &h.root}); err != nil {
		return nil, r.newFailure(ctx, inner, "", 0, err)
	}
	out, err := r.outputs(ctx, f, r.program)
	if err != nil {
		return nil, r.newFailure(ctx, ctx, "", 0, err)
	}
	return encode(out, maxOutput)
}

// withLimits returns a context that is canceled when the run exceeds a limit or its own timeout.
func (r *run) withLimits(ctx context.Context, used time.Duration) (_ context.Context, end func()) {
	inner, cancel := context.WithCancelCause(ctx)
	r.meter.setEnd(cancel)
	limit := r.meter.limits.Time
	why := r.meter.limits.timeError()
	if own := r.program.Timeout; own > 0 && own < limit {
		limit, why = own, timeoutError(own)
	}
	timed, stop := withTimeout(inner, max(limit-used, time.Millisecond), why)
	return timed, func() {
		stop()
		cancel(nil)
	}
}

// vars returns the variables that all expressions see.
func (r *run) vars(h *runHistory) (map[string]any, error) {
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

// sequence runs steps in order. It returns the value of the last step that was not skipped.
func (r *run) sequence(ctx context.Context, f *frame, steps []*node, at location) (any, error) {
	var last any
	for _, n := range steps {
		out, err := r.step(ctx, f, n, at.child(n.ID.Text))
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

// stopError returns the cause with which ctx was canceled, nil if it was not.
func (r *run) stopError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errReleased) {
		return errReleased
	}
	return cause
}

// newFailure converts an error to a failure at a location. If only inner has ended, its cause is the reason;
// if both have, the step was canceled.
func (r *run) newFailure(outer, inner context.Context, path string, line int, err error) error {
	if errors.Is(err, errReleased) || errors.Is(context.Cause(outer), errReleased) {
		return errReleased
	}
	if cause := context.Cause(outer); cause != nil {
		return &failure{fault: faultOf(cause, path, line), canceled: true}
	}
	f, known := errors.AsType[*failure](err)
	if cause := context.Cause(inner); cause != nil {
		if known && path == "" { // the run's time limit
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
	return &failure{fault: faultOf(err, path, line), refused: isRefused(err)}
}

const (
	maxFault = 2000
	maxHint  = 500
)

// faultOf converts an error to a fault. Texts of upstreams are sanitized and shortened.
func faultOf(err error, path string, line int) Fault {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.fault
	}
	e := tool.AsError(err)
	return Fault{Kind: e.Kind, Message: sanitize.Text(e.Message, maxFault), Hint: sanitize.Text(e.Hint, maxHint), Step: path, Line: line, Retryable: e.Retryable}
}

func timeoutError(limit time.Duration) error {
	return &tool.Error{Kind: tool.Timeout, Message: fmt.Sprintf("took longer than %v", limit)}
}

func cancelError(who string) error {
	if who != "" {
		who = " by " + sanitize.Line(who, 100)
	}
	return &tool.Error{Kind: tool.Canceled, Message: "canceled" + who}
}

// detach returns a context for cleanup after ctx has ended. It ends after finalTime, or when the engine releases the run.
func (r *run) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	bare, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	hard := lifetimeOf(ctx)
	undo := context.AfterFunc(hard, func() { cancel(context.Cause(hard)) })
	timer := time.AfterFunc(finalTime, func() { cancel(timeoutError(finalTime)) })
	return bare, func() {
		undo()
		timer.Stop()
		cancel(nil)
	}
}

type lifetimeKey struct{}

// withLifetime stores ctx in itself as the context that ends only when the engine releases the run.
func withLifetime(ctx context.Context) context.Context {
	return context.WithValue(ctx, lifetimeKey{}, ctx)
}

func lifetimeOf(ctx context.Context) context.Context {
	hard, _ := ctx.Value(lifetimeKey{}).(context.Context)
	return hard
}

// journal writes the events of a run in order. Events that can be derived again are buffered until the next durable write.
type journal struct {
	writer  *runlog.Writer
	meter   *meter
	onError func(error) // called once, when an event could not be written

	mu      sync.Mutex
	flushed sync.Cond
	queue   []Event
	queued  int // number of events so far
	written int // how many of them are on disk
	writing bool
	err     error
}

func newJournal(w *runlog.Writer, m *meter, lost func(error)) *journal {
	j := &journal{writer: w, meter: m, onError: lost}
	j.flushed.L = &j.mu
	return j
}

// buffer buffers an event that can be derived again from earlier ones. It is written with the next write.
func (j *journal) buffer(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
}

func (j *journal) add(e Event) {
	e.Time = time.Now().UTC()
	j.queue = append(j.queue, e)
	j.meter.addEvent(e)
	j.queued++
}

// write adds an event, and returns when it and all earlier ones are on disk.
func (j *journal) write(ctx context.Context, e Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
	for mine := j.queued; j.written < mine && j.err == nil; {
		if j.writing {
			j.flushed.Wait()
			continue
		}
		j.flush(ctx)
	}
	return j.err
}

// flush writes the queued events. The caller must hold mu.
func (j *journal) flush(ctx context.Context) {
	batch := j.queue
	j.queue, j.writing = nil, true
	j.mu.Unlock()
	err := j.writer.Append(context.WithoutCancel(ctx), batch...)
	j.mu.Lock()
	j.writing = false
	if err != nil && j.err == nil {
		j.err = errReleased
		j.onError(err)
	}
	j.written += len(batch)
	j.flushed.Broadcast()
}

// sizeOf estimates the size of an event in bytes.
func sizeOf(e Event) int64 { return int64(200 + len(e.Path) + len(e.Input) + len(e.Output)) }
