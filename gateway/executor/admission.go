package executor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// admission limits how many programs run at once. The others wait in queues, one for each principal and each workflow run.
// The queues are served round-robin, so a principal with many programs does not delay those of others. It is safe for
// concurrent use.
type admission struct {
	parallel int
	limits   func() config.Sandbox // length of the queue and maximum wait

	delegated atomic.Int64 // calls in flight whose programs have released their slots

	mu      sync.Mutex
	taken   int
	lines   []*queue // queues that are not empty, the next one first
	waiting int      // programs in bounded queues
	usual   float64  // moving average of the seconds for which a program has its slot
}

// queue is the queue of a principal, or of a workflow run.
type queue struct {
	key     string
	patient bool // of a workflow run: it has no timeout and no bound
	turns   []*waiter
}

// waiter is a waiting program.
type waiter struct {
	given chan *slot // gets the slot; closed when the program is refused
}

// slot is the slot of a running program. The program releases it while it waits for a person or for programs that it has
// started, and takes it back afterwards without waiting, even if that exceeds the limit.
type slot struct {
	of    *admission
	since time.Time

	mu           sync.Mutex
	taken, ended bool
}

// maxDelegated is the limit of concurrent calls that run programs themselves, per slot: each caller keeps its sandbox.
const maxDelegated = 16

// delegate counts one more such call and reports whether it is within the limit.
func (a *admission) delegate() bool {
	if a.delegated.Add(1) <= int64(maxDelegated*a.parallel) {
		return true
	}
	a.delegated.Add(-1)
	return false
}

// enter waits for a slot. Errors are *tool.Error.
func (a *admission) enter(ctx context.Context) (*slot, error) {
	t, s, err := a.line(ctx)
	if err != nil || s != nil {
		return s, err
	}
	var late <-chan time.Time
	if toolcall.ScopeOf(ctx).Run == "" {
		timer := time.NewTimer(a.limits().QueueWait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case s := <-t.given:
		if s == nil {
			return nil, a.busy()
		}
		return s, nil
	case <-ctx.Done():
		err = tool.AsError(ctx.Err())
	case <-late:
		err = a.busy()
	}
	if s := a.forget(t); s != nil && ctx.Err() == nil {
		return s, nil // granted just now
	} else if s != nil {
		s.leave()
	}
	return nil, err
}

// line returns a slot if one is free, else a place in a queue.
func (a *admission) line(ctx context.Context) (*waiter, *slot, error) {
	box := a.limits()
	run := toolcall.ScopeOf(ctx).Run
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken < a.parallel && len(a.lines) == 0 {
		a.taken++
		return nil, &slot{of: a, since: time.Now(), taken: true}, nil
	}
	key := tool.Principal(ctx) + "\x00" + run
	i := slices.IndexFunc(a.lines, func(l *queue) bool { return l.key == key })
	if run == "" && a.waiting >= box.Queue && !a.makeRoom(i) {
		return nil, nil, a.busyNow()
	}
	t := &waiter{given: make(chan *slot, 1)}
	if i < 0 { // makeRoom removes no queue
		a.lines = append(a.lines, &queue{key: key, patient: run != ""})
		i = len(a.lines) - 1
	}
	a.lines[i].turns = append(a.lines[i].turns, t)
	if run == "" {
		a.waiting++
	}
	return t, nil, nil
}

// makeRoom refuses the last program of the longest queue, if that queue is longer than the caller's own by more than one.
// It is called with mu held.
func (a *admission) makeRoom(own int) bool {
	mine := 0
	if own >= 0 {
		mine = len(a.lines[own].turns)
	}
	var longest *queue
	for _, l := range a.lines {
		if !l.patient && (longest == nil || len(l.turns) > len(longest.turns)) {
			longest = l
		}
	}
	if longest == nil || len(longest.turns) <= mine+1 {
		return false
	}
	last := longest.turns[len(longest.turns)-1]
	longest.turns = longest.turns[:len(longest.turns)-1]
	a.waiting--
	close(last.given)
	return true
}

// next hands out free slots, round-robin over the queues. It is called with mu held.
func (a *admission) next() {
	for a.taken < a.parallel && len(a.lines) > 0 {
		l := a.lines[0]
		t := l.turns[0]
		l.turns, a.lines = l.turns[1:], a.lines[1:]
		if len(l.turns) > 0 {
			a.lines = append(a.lines, l)
		}
		if !l.patient {
			a.waiting--
		}
		a.taken++
		t.given <- &slot{of: a, since: time.Now(), taken: true}
	}
}

// forget removes a waiting program from its queue. It returns the slot that the program got in the meantime, nil for none.
func (a *admission) forget(t *waiter) *slot {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, l := range a.lines {
		at := slices.Index(l.turns, t)
		if at < 0 {
			continue
		}
		l.turns = slices.Delete(l.turns, at, at+1)
		if !l.patient {
			a.waiting--
		}
		if len(l.turns) == 0 {
			a.lines = slices.Delete(a.lines, i, i+1)
		}
		return nil
	}
	return <-t.given // given, or closed
}

// leave releases the slot. A second call does nothing.
func (s *slot) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.taken {
		return
	}
	s.taken = false
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.taken--
	s.of.next()
}

// back takes a released slot back.
func (s *slot) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken || s.ended {
		return
	}
	s.taken = true
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.taken++
}

// end releases the slot for good and records how long it was held.
func (s *slot) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.leave()
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	const weight = 0.1
	s.of.usual += weight * (time.Since(s.since).Seconds() - s.of.usual)
}

// maxAfter is the longest Retry-After.
const maxAfter = time.Minute

func (a *admission) busy() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busyNow()
}

// busyNow estimates when to retry: when half of the waiting programs have run. It is called with mu held.
func (a *admission) busyNow() error {
	seconds := math.Ceil(a.usual * float64(a.waiting+1) / 2 / float64(max(1, a.parallel)))
	after := min(maxAfter, max(time.Second, time.Duration(seconds)*time.Second))
	return &tool.Error{Kind: tool.Busy, Message: "too many programs are running", Hint: fmt.Sprintf("try again in %d s", int(after.Seconds())), Retryable: true, After: after}
}

// load returns the number of running and of waiting programs.
func (a *admission) load() (running, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lines {
		waiting += len(l.turns)
	}
	return a.taken, waiting
}

// Load returns the number of running programs, without those that have released their slots, and of waiting ones.
func (ex *Executor) Load() (running, waiting int) { return ex.admission.load() }

// Places returns how many programs run at once at most.
func (ex *Executor) Places() int { return ex.admission.parallel }
