// Package outbox sends notifications in order to clients that may be slow. Its main type is [Queue].
package outbox

import "sync"

// maxQueued is how many functions are queued; more are dropped.
const maxQueued = 256

// Queue runs functions in order, without blocking the callers that add them. The zero value is ready; it is safe for concurrent use.
type Queue struct {
	mu    sync.Mutex
	queue []func()
	busy  bool
	work  sync.WaitGroup
}

// Put adds a function, unless too many wait.
func (q *Queue) Put(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= maxQueued {
		return
	}
	q.queue = append(q.queue, f)
	if !q.busy {
		q.busy = true
		q.work.Go(q.drain)
	}
}

func (q *Queue) drain() {
	for f := q.next(); f != nil; f = q.next() {
		f()
	}
}

// next removes and returns the next function, nil if the queue is empty.
func (q *Queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		q.busy = false
		return nil
	}
	f := q.queue[0]
	q.queue = q.queue[1:]
	return f
}

// Flush waits until all queued functions have run.
func (q *Queue) Flush() { q.work.Wait() }
