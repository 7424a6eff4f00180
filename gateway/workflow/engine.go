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

// Catalog knows what steps use: *gateway.Gateway.
type Catalog interface {
	// Tool returns a tool as it is known now.
	Tool(id tool.ID) (tool.Tool, bool)
	// SkillLanguage returns the language of a skill of the caller in ctx: python or typescript.
	SkillLanguage(ctx context.Context, name string) (string, error)
}

// Labels carry what was read, see [gateway.Origin], into a run and back: *gateway.Gateway.
type Labels interface {
	Read(ctx context.Context) []toolcall.Origin
	Recall(ctx context.Context, read []toolcall.Origin)
}

// carrier shares tokens of personal data between a run and its starter: Labels may be one.
type carrier interface {
	Carry(from, to context.Context)
}

// Options configure an engine. Records and Definitions are required.
type Options struct {
	// Records keep the runs. Who opened them closes them, after the engine.
	Records *store.Store
	// Definitions are the workflows as they are now; asked at each start, from any goroutine.
	Definitions func() []*spec.Definition
	// Logger gets what an operator should know; nil discards.
	Logger *slog.Logger
	// Env returns a variable of the environment; nil has none.
	Env func(name string) (string, bool)
	// People are asked for approvals; nil for none: a step that asks fails.
	People People
	// Catalog says which tools do no harm when they are called again, and what skills are written in; nil knows none.
	Catalog Catalog
	// Labels carry what was read into runs and back; nil carries nothing.
	Labels Labels
	// Attention is called when a run waits for a person, and for each change of what it waits for. It must not block.
	Attention func(Run)
	// Instead answers for steps in tests, see [Instead]. Hurry makes retries at once, and Now says when runs start; nil is time.Now.
	Instead Instead
	Hurry   bool
	Now     func() time.Time
	// Telemetry counts runs and keeps traces of them; nil does not.
	Telemetry *telemetry.Telemetry
	// Alone says that the engine continues with no run by itself, but with those that are started, resumed or answered through it.
	Alone bool
	// Runs is how many go on at once, besides those that wait; 0 is 64.
	Runs int
	// Limits bound each run.
	Limits Limits
	// Keep is how long runs are kept after their end; 0 is 30 days.
	Keep time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	o.Limits = o.Limits.withDefaults()
	if o.Runs == 0 {
		o.Runs = defaultRuns
	}
	return o
}

const (
	defaultRuns = 64
	// maxLeaves is how many steps are under way at once, in all runs.
	maxLeaves = 256
)

// Engine runs workflows. All methods are safe for concurrent use.
type Engine struct {
	door     Door
	opts     Options
	log      *slog.Logger
	logs     *runlog.Logs
	programs programs
	turns    turns
	timers   *store.Schedules
	queue    *queue
	asked    *bell
	leaves   chan struct{} // one for each step under way
	by       string        // what claims are by

	base   context.Context //nolint:containedctx // ends when the engine does, and all runs with it
	end    context.CancelCauseFunc
	work   sync.WaitGroup
	unring func()
	closed sync.Once
}

// Open starts an engine: it continues with all runs that are not over, in the background. Close it.
func Open(door Door, opts *Options) (*Engine, error) {
	if opts == nil || opts.Records == nil || opts.Definitions == nil {
		return nil, errors.New("open engine: records and definitions are required")
	}
	logs, err := runlog.Open(opts.Records)
	timers, err2 := opts.Records.Schedules("run_timers")
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("open engine: %w", err)
	}
	if opts.Keep > 0 {
		logs.KeepFor(opts.Keep)
	}
	o := opts.withDefaults()
	e := &Engine{door: door, opts: o, log: o.Logger, logs: logs, timers: timers, asked: newBell(), leaves: make(chan struct{}, maxLeaves), by: fmt.Sprintf("process %d", os.Getpid())}
	e.base, e.end = context.WithCancelCause(context.Background())
	e.queue = newQueue(e.opts.Runs, func(l *live) { e.work.Go(func() { liveRuns{e}.run(l) }) })
	e.unring = func() {}
	if e.opts.People != nil {
		e.unring = e.opts.People.WatchApprovals(e.asked.tell)
	}
	if e.opts.Alone {
		e.queue.open()
	} else {
		e.work.Go(e.takeOver)
		e.work.Go(e.wake)
		e.work.Go(e.prune)
	}
	return e, nil
}

// Close stops all runs where they are, and waits for that; they go on at the next Open. It is idempotent.
func (e *Engine) Close() error {
	e.closed.Do(func() {
		e.queue.close()
		e.end(errGone)
		e.work.Wait()
		e.unring()
	})
	return nil
}

// takeOver takes over the runs that are not over.
func (e *Engine) takeOver() {
	defer e.queue.open()
	mended, err := e.logs.Mend(e.base)
	if err != nil && e.base.Err() == nil {
		e.log.Error("damaged runs are not in the list", "error", err)
	}
	for _, run := range mended {
		e.log.Warn("a run is in the list again, by its log: its entry was damaged", "run", run.ID, "workflow", run.Workflow)
	}
	for run, err := range e.logs.Summaries(e.base) {
		if err != nil {
			if e.base.Err() == nil {
				e.log.Error("runs of before cannot be read", "error", err)
			}
			return
		}
		if !run.Status.Over() && e.begun(run.ID) {
			e.queue.put(e.left(run))
		}
	}
}

// begun reports whether there is anything of a run that was to be started: who wanted to start it may have been killed before.
func (e *Engine) begun(id string) bool {
	next, stop := iter.Pull2(e.logs.Read(e.base, id, 0))
	defer stop()
	if _, _, ok := next(); ok { // also what cannot be read, as whoever goes on with it finds out
		return true
	}
	if err := e.logs.Remove(e.base, id); err != nil && e.base.Err() == nil {
		e.log.Warn("run that was never begun is not removed", "run", id, "error", err)
	}
	return false
}

// left is a run that another process, or another Open, has left.
func (e *Engine) left(run Run) *live {
	began := run.Status != Queued
	run.Status, run.Waiting = Queued, nil
	l := &live{id: run.ID, workflow: run.Workflow, first: began, state: newState(run, e.told), began: make(chan struct{}), ended: make(chan struct{})}
	e.limit(l)
	return l
}

// limit says how many runs of a run's workflow may go on at once, by the definition as it is now.
func (e *Engine) limit(l *live) {
	if d, err := e.definition(l.workflow); err == nil {
		l.limit = d.Concurrency
	}
}

// told notes how a run stands, after that has changed. The end of a run is noted while the engine closes, too: the log has it.
func (e *Engine) told(run Run) {
	if e.base.Err() != nil && !run.Status.Over() {
		return
	}
	if err := e.logs.PutSummary(context.WithoutCancel(e.base), run); err != nil {
		e.log.Warn("run is not noted in the list", "run", run.ID, "error", err)
	}
	if run.Status == Waiting {
		e.queue.settle()
		if e.opts.Attention != nil && forPerson(run) {
			e.opts.Attention(run)
		}
	}
}

// forPerson reports whether a run waits for one.
func forPerson(run Run) bool {
	for _, p := range run.Waiting {
		if p.For != forTime {
			return true
		}
	}
	return false
}

// enter waits until one more step may be under way. Call leave after it. A step of a run that another run waits for need not: that
// one's step has entered.
func (r *run) enter(ctx context.Context) (leave func(), err error) {
	if ofRun(r.started.Parent) {
		return func() {}, nil
	}
	e := r.engine
	select {
	case e.leaves <- struct{}{}:
		return func() { <-e.leaves }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// identity is who does what a run does.
func identity(ctx context.Context, s Started) context.Context {
	ctx = tool.WithSession(tool.WithPrincipal(ctx, s.Principal), "workflow:"+s.ID)
	if s.Workspace != "" {
		ctx = tool.WithWorkspace(ctx, s.Workspace)
	}
	return tool.WithClient(ctx, "workflow "+s.Workflow)
}

// now is when a run starts.
func (e *Engine) now() time.Time {
	if e.opts.Now != nil {
		return e.opts.Now()
	}
	return time.Now()
}
