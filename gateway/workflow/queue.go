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

// live is a run that an engine has and that is not over.
type live struct {
	id, workflow string
	limit        spec.Concurrency
	state        *state
	first        bool // it had begun before: it need not wait for its turn

	// These are of a run that was just started or resumed; else they are read from its log.
	program *program
	writer  *runlog.Writer
	history *pastRun
	broken  error // why there is no program
	peer    tool.Peer
	place   telemetry.Place // of whoever started it

	mu       sync.Mutex
	run      *run // once it is interpreted
	canceled bool // it is to be canceled, as by says
	by       string
	going    bool          // the queue's: it has had its turn
	began    chan struct{} // closed when run is set
	ended    chan struct{} // closed when the engine does not have it any more
}

// queue decides when runs have their turn. It is safe for concurrent use.
type queue struct {
	most int
	let  func(*live) // begins a run; it does not block

	mu    sync.Mutex
	all   map[string]*live
	ready bool // those of before are known
	over  bool
	known chan struct{} // closed when ready
}

func newQueue(most int, let func(*live)) *queue {
	return &queue{most: most, let: let, all: map[string]*live{}, known: make(chan struct{})}
}

// open begins to let runs go on.
func (q *queue) open() {
	q.mu.Lock()
	q.ready = true
	close(q.known)
	q.mu.Unlock()
	q.settle()
}

// close lets none begin any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
}

// put adds a run, unless it is there: then it returns the one that is.
func (q *queue) put(l *live) *live {
	q.mu.Lock()
	if known := q.all[l.id]; known != nil {
		q.mu.Unlock()
		return known
	}
	q.all[l.id] = l
	q.mu.Unlock()
	q.settle()
	return l
}

// get returns a run, nil for none.
func (q *queue) get(id string) *live {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all[id]
}

// remove removes a run that is over, or taken by another engine.
func (q *queue) remove(l *live) {
	q.mu.Lock()
	if q.all[l.id] == l {
		delete(q.all, l.id)
	}
	q.mu.Unlock()
	q.settle()
}

// of returns the runs of a workflow that have not ended, the oldest first. It is called with mu held.
func (q *queue) of(workflow string) []*live {
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
	run, _, _ := l.state.now()
	return run.Started
}

// room says whether one more run of a workflow may be started, by its rule for when there are too many, and which make room for it.
func (q *queue) room(d *spec.Definition) (leave []*live, ok bool) {
	if d.Concurrency.Limit == 0 {
		return nil, true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	others := q.of(d.Name)
	switch {
	case len(others) < d.Concurrency.Limit:
	case d.Concurrency.Full == "refuse":
		return nil, false
	case d.Concurrency.Full == "cancel":
		return others[:len(others)-d.Concurrency.Limit+1], true
	}
	return nil, true
}

// settle starts the runs that are next.
func (q *queue) settle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ready || q.over {
		return
	}
	going, counts := 0, map[string]int{} // a run that another waits for takes no room: else both might wait for ever
	var waiting []*live
	for _, l := range q.all {
		if !l.going {
			waiting = append(waiting, l)
			continue
		}
		counts[l.workflow]++
		if run, _, _ := l.state.now(); run.Status != Waiting && !ofRun(run.Parent) {
			going++
		}
	}
	slices.SortFunc(waiting, older)
	for _, l := range waiting {
		run, _, _ := l.state.now()
		child := ofRun(run.Parent)
		if l.mayGo(child || going < q.most, counts[l.workflow]) {
			l.going = true
			if !child {
				going++
			}
			counts[l.workflow]++
			q.let(l)
		}
	}
}

// mayGo reports whether it is the turn of a run, where so many others of its workflow go on.
func (l *live) mayGo(room bool, others int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first || l.canceled {
		return true
	}
	return room && (l.limit.Limit == 0 || others < l.limit.Limit)
}

// stop cancels a run, also one that has not begun, and returns when that is on record.
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

// begun says that a run is interpreted from now on.
func (l *live) begun(ctx context.Context, r *run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run = r
	defer close(l.began)
	if l.canceled {
		return r.cancel(ctx, l.by)
	}
	return nil
}
