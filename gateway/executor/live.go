package executor

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/internal/watch"
	"sallyport/sandbox"
)

// The states of an active execution.
const (
	// LiveQueued waits for a slot. LiveWaiting waits for a person.
	LiveQueued  = "queued"
	LiveRunning = "running"
	LiveWaiting = "waiting"
)

// Live is an execution that has not ended. Once it has ended, it has a [history.Record].
type Live struct {
	ID, Principal, Language string
	// Workspace, Environment and Session are as in the [execution.Program]. "" is the default workspace, the default environment, no session.
	Workspace, Environment, Session string
	// State is [LiveQueued], [LiveRunning] or [LiveWaiting].
	State string
	Code  string
	// Started is the time of the request.
	Started time.Time
	// Calls are the first 1,000 calls of tools so far, in the order in which they began; Made is how many there were.
	Calls []LiveCall
	Made  int
	// Output is the end of what it has printed, at most 64 KiB; Bytes is the size of all its output.
	Output []execution.Printed
	Bytes  int64
}

// LiveCall is a call of a tool.
type LiveCall struct {
	Tool  tool.ID
	Begun time.Time
	// Duration and Outcome are those of [toolcall.RecordedCall]; during the call Outcome is "".
	Duration time.Duration
	Outcome  string
}

// active is an active execution.
type active struct {
	*toolcall.Execution
	info   Live // constant fields
	output *output
	stop   context.CancelCauseFunc
	slot   *slot
	set    *activeSet
	shown  interfaces

	mu     sync.Mutex
	state  string
	pauses int // calls that wait for a person
	idle   int // calls that need no slot: those, and calls of in-process upstreams
}

// activeSet is the list of active executions, oldest first.
type activeSet struct {
	mu           sync.Mutex
	list         []*active
	watchers     watch.List
	lastNotified time.Time
	timer        *time.Timer // set while a notification is scheduled
}

// notifyInterval is the shortest time between two notifications of watchers.
const notifyInterval = 100 * time.Millisecond

// scheduleNotify schedules a notification of watchers.
func (l *activeSet) scheduleNotify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		l.timer = time.AfterFunc(max(0, notifyInterval-time.Since(l.lastNotified)), l.notify)
	}
}

func (l *activeSet) notify() {
	l.mu.Lock()
	l.timer, l.lastNotified = nil, time.Now()
	l.mu.Unlock()
	l.watchers.Notify()
}

// track adds an execution; remove ends that.
func (ex *Executor) track(r *toolcall.Execution, program execution.Program, stop context.CancelCauseFunc) *active {
	x := &active{Execution: r, stop: stop, set: &ex.active, state: LiveQueued, info: Live{
		ID: r.ID, Principal: r.Principal, Language: program.Language, Environment: program.Environment, Session: program.Session,
		Code: program.Code, Started: time.Now().UTC(),
	}}
	if program.Workspace != execution.DefaultWorkspace {
		x.info.Workspace = program.Workspace
	}
	r.Yield = x.delegate
	x.output = newOutput(ex.hide, program.OnOutput, ex.active.scheduleNotify)
	ex.active.mu.Lock()
	ex.active.list = append(ex.active.list, x)
	ex.active.mu.Unlock()
	ex.active.scheduleNotify()
	return x
}

// remove removes an execution, after it has been recorded.
func (l *activeSet) remove(x *active) {
	l.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(other *active) bool { return other == x })
	l.mu.Unlock()
	l.scheduleNotify()
}

// admit waits for a slot. Waiting programs are canceled when the gateway closes, as running ones are.
func (ex *Executor) admit(ctx context.Context, e *execution.Result, x *active) error {
	asked := time.Now()
	s, err := ex.admission.acquire(ctx, int64(len(x.info.Code)))
	if err != nil {
		return err
	}
	if ex.sandboxes.Closing() {
		s.end()
		x.stop(nil)
		return toolcall.ClosedError()
	}
	e.Queued = time.Since(asked)
	x.mu.Lock()
	x.slot, x.state = s, LiveRunning
	x.mu.Unlock()
	x.set.scheduleNotify()
	return nil
}

// liveClock is a program's clock for one of its calls.
type liveClock struct {
	tool.Clock
	live *active
}

// Pause implements [tool.Clock].
func (c liveClock) Pause() (resume func()) {
	goOn := c.Clock.Pause()
	c.live.addPauses(1)
	return sync.OnceFunc(func() {
		c.live.addPauses(-1)
		goOn()
	})
}

// addPauses adds to the number of calls that wait for a person. While there is one, the slot is released.
func (x *active) addPauses(more int) {
	x.mu.Lock()
	x.pauses += more
	switch {
	case x.pauses == 0:
		x.state = LiveRunning
	case x.pauses == 1 && more > 0:
		x.state = LiveWaiting
	}
	x.addIdle(more)
	x.mu.Unlock()
	x.set.scheduleNotify()
}

// addIdle adds to the number of calls that need no slot, and releases the slot while there is one. It is called with mu held.
func (x *active) addIdle(more int) {
	x.idle += more
	switch {
	case x.idle == 0:
		x.slot.reacquire()
	case x.idle == 1 && more > 0:
		x.slot.release()
	}
}

// delegate releases the slot until done is called, for a call that may run programs itself: without a free slot they could
// deadlock. It fails if too many calls do so.
func (x *active) delegate() (done func(), err error) {
	if !x.slot.admission.delegate() {
		return nil, &tool.Error{Kind: tool.Busy, Message: "too many programs wait for programs that they have started", Hint: "try again later", Retryable: true}
	}
	give := func(more int) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.addIdle(more)
	}
	give(1)
	return func() {
		give(-1)
		x.slot.admission.delegated.Add(-1)
	}, nil
}

// snapshot returns the current state of the execution.
func (x *active) snapshot() Live {
	now := x.info
	x.mu.Lock()
	now.State = x.state
	x.mu.Unlock()
	calls, made := x.Calls.All()
	now.Made = made
	for _, c := range calls {
		req := LiveCall{Tool: c.Tool, Begun: c.Begun, Duration: c.Duration, Outcome: c.Outcome}
		if c.Outcome == toolcall.Unfinished {
			req.Outcome, req.Duration = "", time.Since(c.Begun)
		}
		now.Calls = append(now.Calls, req)
	}
	now.Output, now.Bytes = x.output.tail()
	return now
}

// endUnadmitted ends an execution that was not admitted, because it was canceled while it waited, or refused.
func (ex *Executor) endUnadmitted(ctx context.Context, program execution.Program, e execution.Result, x *active, err error) (execution.Result, error) {
	if ctx.Err() == nil {
		return execution.Result{}, err
	}
	e.Status = sandbox.Canceled
	noteCanceled(ctx, &e.Outcome)
	if !x.Unattended { // a workflow run need not resume what has not started
		ex.opts.History.Add(ctx, program, &e, x.info.Started, x.Execution, ex.opts.Guard.ExecutionOrigins(ctx, x.Execution))
	}
	return e, nil
}

// visible returns the active executions of the caller, or all of them for an operator, oldest first.
func (l *activeSet) visible(ctx context.Context) []*active {
	l.mu.Lock()
	defer l.mu.Unlock()
	if tool.Operator(ctx) != "" {
		return slices.Clone(l.list)
	}
	var own []*active
	for _, x := range l.list {
		if x.Principal == tool.Principal(ctx) {
			own = append(own, x)
		}
	}
	return own
}

// find returns a visible execution by its id, nil if there is none.
func (l *activeSet) find(ctx context.Context, id string) *active {
	for _, x := range l.visible(ctx) {
		if x.ID == id {
			return x
		}
	}
	return nil
}

// Running returns the active executions of the caller, or all of them for an operator, oldest first.
func (ex *Executor) Running(ctx context.Context) []Live {
	list := ex.active.visible(ctx)
	all := make([]Live, len(list))
	for i, x := range list {
		all[i] = x.snapshot()
	}
	return all
}

// LiveOf returns one execution of the list of [Executor.Running].
func (ex *Executor) LiveOf(ctx context.Context, id string) (Live, bool) {
	x := ex.active.find(ctx, id)
	if x == nil {
		return Live{}, false
	}
	return x.snapshot(), true
}

// WatchRunning calls f when an active execution has changed, at most ten times a second, until stop is called. f must not
// block.
func (ex *Executor) WatchRunning(f func()) (stop func()) { return ex.active.watchers.Add(f) }

// canceledBy is the cause of an execution's end when a person or another client stopped it.
type canceledBy struct{ who string }

func (c canceledBy) Error() string { return "canceled by " + c.who }

// CancelExecution stops an execution of the caller, or any execution for an operator. It does not wait for its end. Errors
// are *tool.Error.
func (ex *Executor) CancelExecution(ctx context.Context, id string) error {
	x := ex.active.find(ctx, id)
	if x == nil {
		if _, err := ex.opts.History.Record(ctx, id); err != nil {
			return err
		}
		return &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(id, 60) + " has ended already"}
	}
	x.stop(canceledBy{cmp.Or(tool.Operator(ctx), tool.Principal(ctx), "its user")})
	ex.opts.Logger.InfoContext(ctx, "execution is canceled", "execution", id, "by", cmp.Or(tool.Operator(ctx), tool.Principal(ctx)))
	return nil
}

// hideSecrets removes secrets from the result, as from the output.
func (ex *Executor) hideSecrets(e *execution.Result) {
	for _, text := range []*string{&e.Stdout.Text, &e.Stderr.Text} {
		*text = ex.hide.Text(*text)
	}
	if e.Value != nil {
		before := len(e.Value.Text)
		e.Value.Text = ex.hide.Text(e.Value.Text)
		e.Value.Size += int64(len(e.Value.Text) - before)
	}
	if e.Fault != nil {
		e.Fault.Message = ex.hide.Text(e.Fault.Message)
	}
	for i := range e.Notes {
		e.Notes[i] = ex.hide.Text(e.Notes[i])
	}
}

// handlesErrors matches programs that tell errors of tools from others, so that they expect some.
var handlesErrors = regexp.MustCompile(`\bToolError\b|["']\b(?:fulfilled|rejected)["']|\.(?:retryable|code|kind)\b`)

// noteFailures adds a note on failed calls to a program that succeeded and does not show their error.
func noteFailures(e *execution.Result, calls *toolcall.List, code string) {
	if e.Status != sandbox.OK {
		return
	}
	if r := e.Refused; r != nil {
		calls.Refused(r.Count, r.Tool, r.Message)
	}
	shown := []string{e.Stdout.Text, e.Stderr.Text}
	if e.Value != nil {
		shown = append(shown, e.Value.Text)
	}
	if note := calls.FailureNote(handlesErrors.MatchString(code), shown...); note != "" {
		e.Notes = append(e.Notes, note)
	}
}

// noteCanceled adds a note on who stopped a program, unless it was the waiting client.
func noteCanceled(ctx context.Context, o *sandbox.Outcome) {
	if by := (canceledBy{}); o.Status == sandbox.Canceled && errors.As(context.Cause(ctx), &by) {
		o.Notes = append(o.Notes, "it was stopped by "+sanitize.Line(by.who, 100))
	}
}
