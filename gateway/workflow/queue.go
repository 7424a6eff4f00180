package workflow

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sallyport/gateway/workflow/runlog"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// live is an unfinished run of an engine.
type live struct {
	id, workflow string
	limit        spec.Concurrency
	state        *state
	skipQueue    bool // it had started before, and does not wait in the queue

	// These are set for a run that was just started or resumed; else they are read from its log.
	program *program
	writer  *runlog.Writer
	history *runHistory
	broken  error // why there is no program
	peer    tool.Peer
	place   telemetry.TraceContext // of its starter

	mu       sync.Mutex
	run      *run // once it is interpreted
	canceled bool // by has requested cancellation
	by       string
	admitted bool          // guarded by the queue: it was started
	began    chan struct{} // closed when run is set
	ended    chan struct{} // closed when the engine has released it
}

// queue starts runs in order within the concurrency limits. It is safe for concurrent use.
type queue struct {
	limit int
	start func(*live) // starts a run; it must not block

	mu     sync.Mutex
	all    map[string]*live
	ready  bool // the stored runs are loaded
	over   bool
	loaded chan struct{} // closed when ready
}

func newQueue(most int, let func(*live)) *queue {
	return &queue{limit: most, start: let, all: map[string]*live{}, loaded: make(chan struct{})}
}

// open marks the stored runs as loaded and starts runs.
func (q *queue) open() {
	q.mu.Lock()
	q.ready = true
	close(q.loaded)
	q.mu.Unlock()
	q.startNext()
}

// close stops starting runs.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
}

// put adds a run and returns it, or returns the present run with the same id.
func (q *queue) put(l *live) *live {
	q.mu.Lock()
	if known := q.all[l.id]; known != nil {
		q.mu.Unlock()
		return known
	}
	q.all[l.id] = l
	q.mu.Unlock()
	q.startNext()
	return l
}

// get returns a run by id, nil for none.
func (q *queue) get(id string) *live {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all[id]
}

// remove removes a run that has ended or was claimed by another engine.
func (q *queue) remove(l *live) {
	q.mu.Lock()
	if q.all[l.id] == l {
		delete(q.all, l.id)
	}
	q.mu.Unlock()
	q.startNext()
}

// ofWorkflow returns the unfinished runs of a workflow, the oldest first. The caller must hold mu.
func (q *queue) ofWorkflow(workflow string) []*live {
	var list []*live
	for _, l := range q.all {
		if l.workflow == workflow {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, older)
	return list
}

func older(a, b *live) int {
	return cmp.Or(a.since().Compare(b.since()), cmp.Compare(a.id, b.id))
}

func (l *live) since() time.Time {
	run, _, _ := l.state.snapshot()
	return run.Started
}

// admit reports whether another run of a workflow may start, by its concurrency policy, and which runs must be canceled for it.
func (q *queue) admit(d *spec.Definition) (leave []*live, ok bool) {
	if d.Concurrency.Limit == 0 {
		return nil, true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	others := q.ofWorkflow(d.Name)
	switch {
	case len(others) < d.Concurrency.Limit:
	case d.Concurrency.Full == "refuse":
		return nil, false
	case d.Concurrency.Full == "cancel":
		return others[:len(others)-d.Concurrency.Limit+1], true
	}
	return nil, true
}

// startNext starts the next runs.
func (q *queue) startNext() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ready || q.over {
		return
	}
	going, counts := 0, map[string]int{} // a run that another run waits for does not count, to avoid a deadlock
	var waiting []*live
	for _, l := range q.all {
		if !l.admitted {
			waiting = append(waiting, l)
			continue
		}
		counts[l.workflow]++
		if run, _, _ := l.state.snapshot(); run.Status != Waiting && !ofRun(run.Parent) {
			going++
		}
	}
	slices.SortFunc(waiting, older)
	for _, l := range waiting {
		run, _, _ := l.state.snapshot()
		child := ofRun(run.Parent)
		if l.canStart(child || going < q.limit, counts[l.workflow]) {
			l.admitted = true
			if !child {
				going++
			}
			counts[l.workflow]++
			q.start(l)
		}
	}
}

// canStart reports whether a run may start. room: the global limit allows it; others is the number of running runs of its workflow.
func (l *live) canStart(room bool, others int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skipQueue || l.canceled {
		return true
	}
	return room && (l.limit.Limit == 0 || others < l.limit.Limit)
}

// stop cancels a run. It returns when the request is logged; a run that has not started logs it at its start.
func (l *live) stop(ctx context.Context, by string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.canceled {
		return nil
	}
	l.canceled, l.by = true, by
	if l.run == nil {
		return nil // begun does it
	}
	return l.run.cancel(ctx, by)
}

// attach attaches the interpreter of a run, and cancels it if that was requested.
func (l *live) attach(ctx context.Context, r *run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run = r
	defer close(l.began)
	if l.canceled {
		return r.cancel(ctx, l.by)
	}
	return nil
}
