package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
	"sallyport/internal/sleep"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Gateway is what tasks need of the gateway.
type Gateway interface {
	Search(ctx context.Context, s toolsearch.Request) (toolsearch.Found, error)
	Execute(ctx context.Context, p execution.Program) (execution.Result, error)
	Record(ctx context.Context, id string) (history.Record, error)
	// FindUpstream finds an upstream that exists for the caller, by its id or its name in the settings.
	FindUpstream(ctx context.Context, name string) (string, error)
}

// Catalog has the definitions of tools.
type Catalog interface {
	Tool(id tool.ID) (tool.Tool, bool)
}

// Options configure tasks. Gateway, Catalog and Settings are required.
type Options struct {
	Gateway  Gateway
	Catalog  Catalog
	Settings config.Source
	// Labels carry labels of data into tasks and back; nil carries none.
	Labels Labels
	// Budgets count money; nil for none.
	Budgets Budgets
	// Records stores tasks; nil keeps them in memory, until Close.
	Records *store.Store
	// Environment is the model that environment variables describe, used if the settings have none; nil for none.
	Environment *models.Settings
	// Now returns the time; nil is time.Now. It is the clock of the limits of a day only.
	Now func() time.Time
	// Logger gets errors of the store; nil discards them.
	Logger *slog.Logger
}

// Budgets count the money that principals spend.
type Budgets interface {
	// MoneyLeft returns a *[tool.Error] if a principal has used up its money.
	MoneyLeft(ctx context.Context, principal string) error
	Spend(principal string, money float64)
}

// Tasks works on tasks and keeps their records. It is safe for concurrent use.
type Tasks struct {
	opts    Options
	records *records
	log     *slog.Logger
	quit    context.Context //nolint:containedctx // ends with Close
	stop    context.CancelFunc

	mu      sync.Mutex
	live    map[string]*work
	working sync.WaitGroup
	unserve func()             // ends the requests of other gateways
	open    map[string]*opened // endpoints by name
}

// work is a task while it runs.
type work struct {
	mu      sync.Mutex
	task    Task
	changed chan struct{} // closed and replaced at each change
	cancel  context.CancelCauseFunc
}

// opened is an endpoint with the settings that it was opened with.
type opened struct {
	settings string
	endpoint *models.Endpoint
}

// Open returns the tasks of a gateway. Close them before the gateway.
func Open(opts Options) (*Tasks, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	kept, err := openRecords(opts.Records, opts.Settings.Load().Tasks.Keep, opts.Logger)
	if err != nil {
		return nil, err
	}
	kept.now = opts.Now
	t := &Tasks{opts: opts, records: kept, log: opts.Logger, live: map[string]*work{}, open: map[string]*opened{}, unserve: func() {}}
	t.quit, t.stop = context.WithCancel(context.Background())
	if opts.Records.Shared() {
		t.unserve = kept.cancels.Serve(opts.Logger, t.serveCancel)
	}
	return t, nil
}

// Close cancels all tasks and waits for them. It is idempotent.
func (t *Tasks) Close() error {
	t.unserve()
	t.stop()
	t.mu.Lock()
	for _, w := range t.live {
		w.cancel(toolcall.ClosedError())
	}
	t.mu.Unlock()
	t.working.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, o := range t.open {
		o.endpoint.Close()
		delete(t.open, name)
	}
	return nil
}

// errCanceled is the cause of the end of a task that was canceled.
var errCanceled = &tool.Error{Kind: tool.Canceled, Message: "the task was canceled"}

// Run works on a task until it is over, and calls seen with each state of it; nil for none. It ends with ctx. Errors are
// *tool.Error, for an invalid request only: a task that fails is a result.
func (t *Tasks) Run(ctx context.Context, r Request, seen func(Task)) (Task, error) {
	ctx = r.confine(ctx)
	w, done, err := t.begin(ctx, &r)
	if err != nil {
		return Task{}, err
	}
	go func() { defer done(); t.work(w.context(ctx), w, r) }()
	return t.follow(context.WithoutCancel(ctx), w, seen)
}

// Start begins a task on behalf of the caller and returns it as it is now. It continues after ctx has ended.
func (t *Tasks) Start(ctx context.Context, r Request) (Task, error) {
	ctx = r.confine(tool.Detach(ctx))
	w, done, err := t.begin(ctx, &r)
	if err != nil {
		return Task{}, err
	}
	go func() { defer done(); t.work(w.context(ctx), w, r) }()
	return w.now(), nil
}

// confine returns the context of a task that is resumed, which stays at the endpoint where it began.
func (r Request) confine(ctx context.Context) context.Context {
	if r.old == nil {
		return ctx
	}
	return tool.WithEndpoint(ctx, r.old.Endpoint)
}

// context returns the context of the work: that of the caller, which cancel ends too.
func (w *work) context(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.cancel
	w.cancel = cancel
	before(nil)
	return ctx
}

// begin checks a request and registers its task. done must be called when the work has ended.
func (t *Tasks) begin(ctx context.Context, r *Request) (w *work, done func(), err error) {
	if err := t.check(ctx, r); err != nil {
		return nil, nil, err
	}
	w = newWork(ctx, *r)
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := t.opts.Settings.Load().Tasks.Parallel
	switch {
	case t.quit.Err() != nil:
		return nil, nil, toolcall.ClosedError()
	case len(t.live) >= limit:
		return nil, nil, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("%d tasks run already", limit), Hint: "try again when one has ended; tasks.parallel sets the limit", Retryable: true}
	case t.live[w.task.ID] != nil:
		return nil, nil, toolcall.Invalid("task "+w.task.ID+" runs already", "use another id")
	}
	t.live[w.task.ID] = w
	t.working.Add(1)
	return w, func() {
		t.remove(w)
		w.change(func(*Task) {}) // wakes followers
		t.working.Done()
	}, nil
}

// remove takes a task off the running ones.
func (t *Tasks) remove(w *work) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[w.task.ID] == w { // not the task that resumes it
		delete(t.live, w.task.ID)
	}
}

func newWork(ctx context.Context, r Request) *work {
	w := &work{changed: make(chan struct{}), cancel: func(error) {}, task: Task{
		ID: cmp.Or(r.ID, NewID()), Principal: tool.Principal(ctx), Client: tool.Client(ctx), Endpoint: tool.Endpoint(ctx), Task: r.Task, Args: r.Args, Only: r.Only, Output: r.Output,
		Workspace: r.Workspace, Environment: r.Environment, Model: r.Model, Plan: r.Plan, Status: Running, Begun: time.Now().UTC(),
	}}
	if old := r.old; old != nil {
		w.task.Begun, w.task.Turns, w.task.Tokens, w.task.Price = old.Begun, old.Turns, old.Tokens, old.Price
		w.task.Program, w.task.Language, w.task.Execution, w.task.Notes = old.Program, old.Language, old.Execution, old.Notes
	}
	return w
}

// check checks a request, and replaces names by ids.
func (t *Tasks) check(ctx context.Context, r *Request) error {
	r.Task = sanitize.Text(r.Task, MaxTask+1)
	size := 0
	for name, value := range r.Args {
		size += len(name) + len(value)
	}
	switch {
	case r.Task == "" || len(r.Task) > MaxTask:
		return toolcall.Invalid(fmt.Sprintf("a task has 1 to %d bytes, not %d", MaxTask, len(r.Task)), "say in words what is to be done")
	case size > maxArgs:
		return toolcall.Invalid(fmt.Sprintf("the arguments have more than %d KiB", maxArgs>>10), "put data into a file of the workspace")
	case r.ID != "" && !IDPattern.MatchString(r.ID):
		return toolcall.Invalid("the id of a task is t- and 12 letters", "omit it")
	}
	if _, known := t.opts.Settings.Load().Models[r.Model]; r.Model != "" && !known {
		return toolcall.NotOneOf("model", r.Model, "models in the settings has their names")
	}
	for i, name := range r.Only {
		id, err := t.opts.Gateway.FindUpstream(ctx, name)
		if err != nil {
			return err
		}
		r.Only[i] = id
	}
	slices.Sort(r.Only)
	r.Only = slices.Compact(r.Only)
	return nil
}

// Show returns a task of the caller, or of any principal for an operator.
func (t *Tasks) Show(ctx context.Context, id string) (Task, error) {
	if w := t.running(ctx, id); w != nil {
		return w.now(), nil
	}
	return t.records.show(ctx, id)
}

// List returns tasks of the caller, or of all principals for an operator, the newest first, at most limit.
func (t *Tasks) List(ctx context.Context, limit int) ([]Task, error) {
	all, err := t.records.list(ctx, limit)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.live {
		if one := w.now(); visible(ctx, one) {
			all = append(slices.DeleteFunc(all, func(o Task) bool { return o.ID == one.ID }), one)
		}
	}
	slices.SortFunc(all, func(a, b Task) int { return b.Begun.Compare(a.Begun) })
	return all[:min(limit, len(all))], nil
}

// cancelTimeout is how long another gateway may take to cancel a task.
const cancelTimeout = 10 * time.Second

// Cancel stops a running task, also one of another gateway.
func (t *Tasks) Cancel(ctx context.Context, id string) error {
	one, err := t.Show(ctx, id)
	if err != nil {
		return err
	}
	if one.Over() {
		return toolcall.Invalid("the task has ended: "+string(one.Status), "only a running task can be canceled")
	}
	key := history.KeyOf(one.Principal, id)
	if t.serveCancel(key, nil) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, cancelTimeout)
	defer end()
	if err := t.records.cancels.Ask(ctx, key, nil); errors.Is(err, context.DeadlineExceeded) {
		return &tool.Error{Kind: tool.Timeout, Message: "the gateway that works on the task does not answer", Hint: "try again in some seconds", Retryable: true}
	} else if err != nil {
		return toolcall.Unreadable(ctx, t.log, err)
	}
	return nil
}

// serveCancel cancels a task of this gateway, and reports whether the gateway works on it.
func (t *Tasks) serveCancel(key store.Key, _ []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.live[key[len(key)-1]]
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.task.Over() || !slices.Equal(history.KeyOf(w.task.Principal, w.task.ID), key) {
		return false
	}
	w.cancel(errCanceled)
	return true
}

// followInterval is how often a task of another gateway is looked at.
const followInterval = time.Second

// Follow calls seen with each state of a task until it is over or ctx ends, and returns the last one.
func (t *Tasks) Follow(ctx context.Context, id string, seen func(Task)) (Task, error) {
	if w := t.running(ctx, id); w != nil {
		return t.follow(ctx, w, seen)
	}
	for last := (Task{}); ; {
		one, err := t.records.show(ctx, id)
		if err != nil {
			return Task{}, err
		}
		if seen != nil && !reflect.DeepEqual(one, last) {
			seen(one)
		}
		last = one
		if one.Over() {
			return one, nil
		}
		select {
		case <-time.After(followInterval):
		case <-ctx.Done():
			return one, nil
		}
	}
}

func (t *Tasks) follow(ctx context.Context, w *work, seen func(Task)) (Task, error) {
	for {
		w.mu.Lock()
		now, changed := w.task.clone(), w.changed
		w.mu.Unlock()
		if seen != nil {
			seen(now)
		}
		if now.Over() {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return now, nil
		}
	}
}

// running returns a running task that the caller may see, nil for none.
func (t *Tasks) running(ctx context.Context, id string) *work {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.live[id]
	if w == nil || !visible(ctx, w.now()) {
		return nil
	}
	return w
}

// visible reports whether the caller may see a task.
func visible(ctx context.Context, t Task) bool {
	return tool.Operator(ctx) != "" || t.Principal == tool.Principal(ctx)
}

func (w *work) now() Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.task.clone()
}

// clone returns a copy with turns that do not change later.
func (t Task) clone() Task {
	t.Turns, t.Notes = slices.Clone(t.Turns), slices.Clone(t.Notes)
	return t
}

// change changes a task and wakes those who follow it.
func (w *work) change(do func(t *Task)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do(&w.task)
	close(w.changed)
	w.changed = make(chan struct{})
}

// end records the end of a task, unless one is recorded.
func (t *Tasks) end(ctx context.Context, w *work, status Status, err error) {
	last := w.now()
	if last.Over() {
		return
	}
	last.Status, last.Ended = status, time.Now().UTC()
	if err != nil {
		said := tool.AsError(err)
		if cause, ok := errors.AsType[*tool.Error](context.Cause(ctx)); ok && ctx.Err() != nil {
			said = cause
		}
		if last.Kind, last.Error = string(said.Kind), said.Error(); said.Kind == tool.Canceled {
			last.Status = Canceled
		}
	}
	err = t.records.write(ctx, last)
	if err == nil {
		t.remove(w) // before anybody learns of the end: a task that ended can be resumed
	} else {
		t.log.ErrorContext(ctx, "the end of a task was not recorded", "task", last.ID, "error", err)
	}
	w.change(func(t *Task) { *t = last })
	for (errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrUnavailable)) && sleep.For(t.quit, recordInterval) == nil {
		err = t.records.write(ctx, last)
	}
}

// recordInterval is how often the end of a task is written again while the store does not answer.
const recordInterval = 5 * time.Second
