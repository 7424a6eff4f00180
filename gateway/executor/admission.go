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

	mu         sync.Mutex
	taken      int
	queues     []*queue // queues that are not empty, the next one first
	waiting    int      // programs in bounded queues
	avgSeconds float64  // moving average of the seconds for which a program has its slot
}

// queue is the queue of a principal, or of a workflow run.
type queue struct {
	key       string
	unbounded bool // of a workflow run: it has no timeout and no bound
	waiters   []*waiter
}

// waiter is a waiting program.
type waiter struct {
	granted chan *slot // gets the slot; closed when the program is refused
}

// slot is the slot of a running program. The program releases it while it waits for a person or for programs that it has
// started, and takes it back afterwards without waiting, even if that exceeds the limit.
type slot struct {
	admission *admission
	since     time.Time

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

// acquire waits for a slot. Errors are *tool.Error.
func (a *admission) acquire(ctx context.Context) (*slot, error) {
	t, s, err := a.enqueue(ctx)
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
	case s := <-t.granted:
		if s == nil {
			return nil, a.busyError()
		}
		return s, nil
	case <-ctx.Done():
		err = tool.AsError(ctx.Err())
	case <-late:
		err = a.busyError()
	}
	if s := a.dequeue(t); s != nil && ctx.Err() == nil {
		return s, nil // granted just now
	} else if s != nil {
		s.release()
	}
	return nil, err
}

// enqueue returns a slot if one is free, else a place in a queue.
func (a *admission) enqueue(ctx context.Context) (*waiter, *slot, error) {
	box := a.limits()
	run := toolcall.ScopeOf(ctx).Run
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken < a.parallel && len(a.queues) == 0 {
		a.taken++
		return nil, &slot{admission: a, since: time.Now(), taken: true}, nil
	}
	key := tool.Principal(ctx) + "\x00" + run
	i := slices.IndexFunc(a.queues, func(l *queue) bool { return l.key == key })
	if run == "" && a.waiting >= box.Queue && !a.makeRoom(i) {
		return nil, nil, a.busyErrorLocked()
	}
	t := &waiter{granted: make(chan *slot, 1)}
	if i < 0 { // makeRoom removes no queue
		a.queues = append(a.queues, &queue{key: key, unbounded: run != ""})
		i = len(a.queues) - 1
	}
	a.queues[i].waiters = append(a.queues[i].waiters, t)
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
		mine = len(a.queues[own].waiters)
	}
	var longest *queue
	for _, l := range a.queues {
		if !l.unbounded && (longest == nil || len(l.waiters) > len(longest.waiters)) {
			longest = l
		}
	}
	if longest == nil || len(longest.waiters) <= mine+1 {
		return false
	}
	last := longest.waiters[len(longest.waiters)-1]
	longest.waiters = longest.waiters[:len(longest.waiters)-1]
	a.waiting--
	close(last.granted)
	return true
}

// grantSlots hands out free slots, round-robin over the queues. It is called with mu held.
func (a *admission) grantSlots() {
	for a.taken < a.parallel && len(a.queues) > 0 {
		l := a.queues[0]
		t := l.waiters[0]
		l.waiters, a.queues = l.waiters[1:], a.queues[1:]
		if len(l.waiters) > 0 {
			a.queues = append(a.queues, l)
		}
		if !l.unbounded {
			a.waiting--
		}
		a.taken++
		t.granted <- &slot{admission: a, since: time.Now(), taken: true}
	}
}

// dequeue removes a waiting program from its queue. It returns the slot that the program got in the meantime, nil for none.
func (a *admission) dequeue(t *waiter) *slot {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, l := range a.queues {
		at := slices.Index(l.waiters, t)
		if at < 0 {
			continue
		}
		l.waiters = slices.Delete(l.waiters, at, at+1)
		if !l.unbounded {
			a.waiting--
		}
		if len(l.waiters) == 0 {
			a.queues = slices.Delete(a.queues, i, i+1)
		}
		return nil
	}
	return <-t.granted // given, or closed
}

// release releases the slot. A second call does nothing.
func (s *slot) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.taken {
		return
	}
	s.taken = false
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	s.admission.taken--
	s.admission.grantSlots()
}

// reacquire takes a released slot back.
func (s *slot) reacquire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken || s.ended {
		return
	}
	s.taken = true
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	s.admission.taken++
}

// end releases the slot for good and records how long it was held.
func (s *slot) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.release()
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	const weight = 0.1
	s.admission.avgSeconds += weight * (time.Since(s.since).Seconds() - s.admission.avgSeconds)
}

// maxRetryAfter is the longest Retry-After.
const maxRetryAfter = time.Minute

func (a *admission) busyError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busyErrorLocked()
}

// busyErrorLocked estimates when to retry: when half of the waiting programs have run. It is called with mu held.
func (a *admission) busyErrorLocked() error {
	seconds := math.Ceil(a.avgSeconds * float64(a.waiting+1) / 2 / float64(max(1, a.parallel)))
	after := min(maxRetryAfter, max(time.Second, time.Duration(seconds)*time.Second))
	return &tool.Error{Kind: tool.Busy, Message: "too many programs are running", Hint: fmt.Sprintf("try again in %d s", int(after.Seconds())), Retryable: true, After: after}
}

// load returns the number of running and of waiting programs.
func (a *admission) load() (running, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.queues {
		waiting += len(l.waiters)
	}
	return a.taken, waiting
}

// Load returns the number of running programs, without those that have released their slots, and of waiting ones.
func (ex *Executor) Load() (running, waiting int) { return ex.admission.load() }

// Slots returns how many programs run at once at most.
func (ex *Executor) Slots() int { return ex.admission.parallel }
