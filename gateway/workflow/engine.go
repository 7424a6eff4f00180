package workflow

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/runlog"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/store"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Catalog looks up what steps use. *gateway.Gateway implements it.
type Catalog interface {
	// Tool returns the current definition of a tool.
	Tool(id tool.ID) (tool.Tool, bool)
	// SkillLanguage returns the language of a skill, python or typescript. Skills belong to the caller in ctx.
	SkillLanguage(ctx context.Context, name string) (string, error)
}

// Labels transfer the labels of data that was read (see [toolcall.Origin]) into a run and back. *gateway.Gateway implements it.
type Labels interface {
	SessionOrigins(ctx context.Context) []toolcall.Origin
	AddOrigins(ctx context.Context, read []toolcall.Origin)
}

// carrier is optionally implemented by Labels. It shares the tokens of personal data between a run and its starter.
type carrier interface {
	ShareSession(from, to context.Context)
}

// Options configure an engine. Records and Definitions are required.
type Options struct {
	// Records store the runs. The caller closes them after the engine.
	Records *store.Store
	// Definitions returns the current workflows. It is called at each start, from any goroutine.
	Definitions func() []*spec.Definition
	// Logger is for the operator; nil discards.
	Logger *slog.Logger
	// Env looks up an environment variable; nil has none.
	Env func(name string) (string, bool)
	// Approvals asks for approvals; if nil, a step that needs one fails.
	Approvals Approvals
	// Catalog says which tools are safe to repeat, and the languages of skills; nil knows none.
	Catalog Catalog
	// Plugins calls steps of plugins; nil has none.
	Plugins Plugins
	// Tasks does the tasks of steps; if nil, such a step fails.
	Tasks Tasks
	// Labels transfers data labels into runs and back; nil transfers nothing.
	Labels Labels
	// OnWaiting is called when a run waits for a person, and when what it waits for changes. It must not block.
	OnWaiting func(Run)
	// Stub stubs steps in tests, see [Stub]. Hurry retries without delay. Now returns the start time of runs; nil is time.Now.
	Stub         Stub
	NoRetryDelay bool
	Now          func() time.Time
	// Telemetry records metrics and traces of runs; nil records nothing.
	Telemetry *telemetry.Telemetry
	// NoAutoResume: the engine does not continue stored runs by itself, only runs that are started, resumed or answered through it.
	NoAutoResume bool
	// MaxRuns limits concurrent runs, not counting those that wait; 0 is 64.
	MaxRuns int
	// Limits bound each run.
	Limits Limits
	// Retention is how long finished runs are stored; 0 is 30 days.
	Retention time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	o.Limits = o.Limits.withDefaults()
	if o.MaxRuns == 0 {
		o.MaxRuns = defaultRuns
	}
	return o
}

const (
	defaultRuns = 64
	// maxSteps limits concurrent steps over all runs.
	maxSteps = 256
)

// Engine runs workflows. All methods are safe for concurrent use.
type Engine struct {
	caller           Caller
	opts             Options
	log              *slog.Logger
	logs             *runlog.Logs
	programs         programs
	keyLocks         keyedMutex
	timers           *store.Schedules
	claims           runClaims
	queue            *queue
	approvalsChanged *broadcaster
	stepSlots        chan struct{} // a semaphore: one element for each running step
	owner            string        // the name in Claimed events

	base    context.Context //nolint:containedctx // is canceled when the engine closes, which ends all runs
	end     context.CancelCauseFunc
	work    sync.WaitGroup
	unwatch func()
	unserve func() // ends the requests of other gateways
	closed  sync.Once
}

// Open starts an engine. In the background, it continues all unfinished runs. The caller must close it.
func Open(door Caller, opts *Options) (*Engine, error) {
	if opts == nil || opts.Records == nil || opts.Definitions == nil {
		return nil, errors.New("open engine: records and definitions are required")
	}
	logs, err := runlog.Open(opts.Records)
	timers, err2 := opts.Records.Schedules("run_timers")
	claims, err3 := opts.Records.Claims("runs")
	cancels, err4 := opts.Records.Requests("cancel_run")
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("open engine: %w", err)
	}
	if opts.Retention > 0 {
		logs.SetRetention(opts.Retention)
	}
	o := opts.withDefaults()
	e := &Engine{caller: door, opts: o, log: o.Logger, logs: logs, timers: timers, approvalsChanged: newBroadcaster(), stepSlots: make(chan struct{}, maxSteps), owner: fmt.Sprintf("process %d", os.Getpid())}
	e.base, e.end = context.WithCancelCause(context.Background())
	e.claims = runClaims{claims, cancels, e.base, e.log}
	e.queue = newQueue(e.opts.MaxRuns, func(l *live) { e.work.Go(func() { liveRuns{e}.run(l) }) })
	e.unwatch = func() {}
	if e.opts.Approvals != nil {
		e.unwatch = e.opts.Approvals.WatchApprovals(e.approvalsChanged.notify)
	}
	e.unserve = func() {}
	if opts.Records.Shared() {
		e.unserve = cancels.Serve(e.log, func(key store.Key, by []byte) bool { return serveCancel(e, key, string(by)) })
	}
	if e.opts.NoAutoResume {
		e.queue.open()
	} else {
		e.work.Go(e.recoverRuns)
		e.work.Go(e.watchTimers)
		e.work.Go(e.prune)
		if opts.Records.Shared() {
			e.work.Go(e.adoptRuns)
		}
	}
	return e, nil
}

// Close stops all runs and waits for them; they continue at the next Open. It is idempotent.
func (e *Engine) Close() error {
	e.closed.Do(func() {
		e.unserve()
		e.queue.close()
		e.end(errReleased)
		e.work.Wait()
		e.unwatch()
	})
	return nil
}

// recoverRuns queues the unfinished runs of the store.
func (e *Engine) recoverRuns() {
	defer e.queue.open()
	mended, err := e.logs.RestoreSummaries(e.base)
	if err != nil && e.base.Err() == nil {
		e.log.Error("cannot restore damaged runs", "error", err)
	}
	for _, run := range mended {
		e.log.Warn("restored the damaged list entry of a run from its log", "run", run.ID, "workflow", run.Workflow)
	}
	for run, err := range e.logs.Summaries(e.base) {
		if err != nil {
			if e.base.Err() == nil {
				e.log.Error("cannot read earlier runs", "error", err)
			}
			return
		}
		if !run.Status.Over() && e.claims.mayContinue(run.ID) && e.begun(run.ID) {
			e.queue.put(e.restore(run))
		}
	}
}

// begun reports whether a run has a log. A process that was killed during a start leaves a run without one, which begun removes.
func (e *Engine) begun(id string) bool {
	next, stop := iter.Pull2(e.logs.Read(e.base, id, 0))
	defer stop()
	if _, _, ok := next(); ok { // also if unreadable: continuing the run reports that
		return true
	}
	if err := e.logs.Remove(e.base, id); err != nil && e.base.Err() == nil {
		e.log.Warn("cannot remove a run that never started", "run", id, "error", err)
	}
	return false
}

// restore returns the live run for a stored run, which another process or an earlier Open has left.
func (e *Engine) restore(run Run) *live {
	began := run.Status != Queued
	run.Status, run.Waiting = Queued, nil
	l := &live{id: run.ID, workflow: run.Workflow, skipQueue: began, state: newState(run, e.recordStatus), began: make(chan struct{}), ended: make(chan struct{})}
	e.setLimit(l)
	return l
}

// setLimit sets the concurrency limit of a run from the current definition of its workflow.
func (e *Engine) setLimit(l *live) {
	if d, err := e.definition(l.workflow); err == nil {
		l.limit = d.Concurrency
	}
}

// recordStatus stores the summary of a run after a change. While the engine closes, it stores only the ends of runs, which the log has.
func (e *Engine) recordStatus(run Run) {
	if e.base.Err() != nil && !run.Status.Over() {
		return
	}
	if err := e.logs.PutSummary(context.WithoutCancel(e.base), run); err != nil {
		e.log.Warn("cannot update a run in the list", "run", run.ID, "error", err)
	}
	if run.Status == Waiting {
		e.queue.startNext()
		if e.opts.OnWaiting != nil && needsPerson(run) {
			e.opts.OnWaiting(run)
		}
	}
}

// needsPerson reports whether a run waits for a person.
func needsPerson(run Run) bool {
	for _, p := range run.Waiting {
		if p.For != forTime {
			return true
		}
	}
	return false
}

// enter acquires a step slot; leave releases it. A run that was started by a step of another run needs none, since that
// step holds one.
func (r *run) enter(ctx context.Context) (leave func(), err error) {
	if ofRun(r.started.Parent) {
		return func() {}, nil
	}
	e := r.engine
	select {
	case e.stepSlots <- struct{}{}:
		return func() { <-e.stepSlots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// identity returns ctx with the principal, session, workspace, client and endpoint of a run.
func identity(ctx context.Context, s Started) context.Context {
	ctx = tool.WithEndpoint(ctx, s.Endpoint)
	ctx = tool.WithSession(tool.WithPrincipal(ctx, s.Principal), "workflow:"+s.ID)
	if s.Workspace != "" {
		ctx = tool.WithWorkspace(ctx, s.Workspace)
	}
	return tool.WithClient(ctx, "workflow "+s.Workflow)
}

// now returns the start time of a run.
func (e *Engine) now() time.Time {
	if e.opts.Now != nil {
		return e.opts.Now()
	}
	return time.Now()
}
