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
	bytes      int64    // the sizes of all of those together
	avgSeconds float64  // moving average of the seconds for which a program has its slot
}

// queue is the queue of a principal, or of a workflow run.
type queue struct {
	key       string
	unbounded bool // of a workflow run: it has no timeout and no bound
	waiters   []*waiter
	bytes     int64 // their sizes together
}

// waiter is a waiting program.
type waiter struct {
	size    int64
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

// maxQueuedBytes is the maximum size of all waiting programs together: their number alone would not bound the memory that they take.
const maxQueuedBytes = 256 << 20

// acquire waits for a slot for a program of a size in bytes. Errors are *tool.Error.
func (a *admission) acquire(ctx context.Context, size int64) (*slot, error) {
	t, s, err := a.enqueue(ctx, size)
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
func (a *admission) enqueue(ctx context.Context, size int64) (*waiter, *slot, error) {
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
	if run == "" && !a.hasRoom(i, size, box.Queue) {
		return nil, nil, a.busyErrorLocked()
	}
	t := &waiter{size: size, granted: make(chan *slot, 1)}
	if i < 0 { // makeRoom removes no queue
		a.queues = append(a.queues, &queue{key: key, unbounded: run != ""})
		i = len(a.queues) - 1
	}
	a.queues[i].waiters = append(a.queues[i].waiters, t)
	a.count(a.queues[i], t, 1)
	return t, nil, nil
}

// count adds a program to the sums, or removes it from them if n is -1. It is called with mu held.
func (a *admission) count(l *queue, t *waiter, n int) {
	if l.unbounded {
		return
	}
	l.bytes += int64(n) * t.size
	a.waiting, a.bytes = a.waiting+n, a.bytes+int64(n)*t.size
}

// hasRoom reports whether a program may wait, in the queue with an index, or in a new one for -1. Others may be refused for it, but none
// if it may not wait. It is called with mu held.
func (a *admission) hasRoom(own int, size int64, most int) bool {
	var removed []removal
	remove := func(size int64, length func(*queue) int64) bool {
		r, ok := a.makeRoom(own, size, length)
		if ok {
			removed = append(removed, r)
		}
		return ok
	}
	ok := a.waiting < most || remove(1, func(l *queue) int64 { return int64(len(l.waiters)) })
	for ok && a.bytes+size > maxQueuedBytes {
		ok = remove(size, func(l *queue) int64 { return l.bytes })
	}
	for _, r := range slices.Backward(removed) {
		if ok {
			close(r.waiter.granted)
		} else {
			r.from.waiters = append(r.from.waiters, r.waiter)
			a.count(r.from, r.waiter, 1)
		}
	}
	return ok
}

// removal is a program that was removed from the end of a queue.
type removal struct {
	from   *queue
	waiter *waiter
}

// makeRoom removes the last program of the longest queue, if that queue is longer than the caller's own with the new program, by a
// measure in which that has a size. It is called with mu held.
func (a *admission) makeRoom(own int, size int64, length func(*queue) int64) (removal, bool) {
	mine := size
	if own >= 0 {
		mine += length(a.queues[own])
	}
	var longest *queue
	for _, l := range a.queues {
		if !l.unbounded && len(l.waiters) > 0 && (longest == nil || length(l) > length(longest)) {
			longest = l
		}
	}
	if longest == nil || length(longest) <= mine {
		return removal{}, false
	}
	last := longest.waiters[len(longest.waiters)-1]
	longest.waiters = longest.waiters[:len(longest.waiters)-1]
	a.count(longest, last, -1)
	return removal{longest, last}, true
}

// grantSlots hands out free slots, round-robin over the queues. It is called with mu held.
func (a *admission) grantSlots() {
	for a.taken < a.parallel && len(a.queues) > 0 {
		l := a.queues[0]
		a.queues = a.queues[1:]
		if len(l.waiters) == 0 { // its programs were refused
			continue
		}
		t := l.waiters[0]
		l.waiters = l.waiters[1:]
		if len(l.waiters) > 0 {
			a.queues = append(a.queues, l)
		}
		a.count(l, t, -1)
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
		a.count(l, t, -1)
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
