package alerts

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sallyport/internal/retry"
	"sallyport/internal/sleep"
	"sallyport/internal/store"
)

const (
	// Window is the least time between two messages of one type to a receiver.
	Window = 10 * time.Second
	// maxQueue bounds the events that wait for a receiver, maxEvents those of one message.
	maxQueue  = 500
	maxEvents = 50
	// minBackoff and maxBackoff bound the delay between two attempts, maxAfter that which a receiver asks for. A message is
	// given up after giveUp.
	minBackoff = time.Second
	maxBackoff = time.Minute
	maxAfter   = 5 * time.Minute
	giveUp     = time.Hour
)

// receiver is the queue of one receiver. A goroutine sends while it is not empty.
type receiver struct {
	alerts *Alerts
	name   string
	wake   chan struct{}

	mu      sync.Mutex
	queue   []Event
	last    map[string]time.Time // when a message of a type was begun
	dropped int
	running bool
}

// add queues an event. The oldest is dropped if there are too many. It is called with the lock of its alerts held.
func (r *receiver) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue = append(r.queue, e); len(r.queue) > maxQueue {
		r.alerts.opts.Count(r.queue[0].what(), "dropped", 1)
		r.queue = slices.Delete(r.queue, 0, 1)
		r.dropped++
	}
	if !r.running {
		r.running = true
		r.alerts.run(r.run)
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// forget removes an approval that is no longer pending.
func (r *receiver) forget(approval string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = slices.DeleteFunc(r.queue, func(e Event) bool { return e.Approval == approval })
}

// run sends until the queue is empty.
func (r *receiver) run(closing, sending context.Context) {
	for {
		events, dropped, wait := r.next(time.Now(), closing.Err() != nil)
		switch {
		case len(events) > 0:
			if events = r.markSent(sending, events); len(events) > 0 {
				r.deliver(closing, sending, r.alerts.message(r.name, events, dropped))
			}
		case wait > 0:
			r.rest(closing, wait)
		default:
			return
		}
	}
}

// rest waits until something else is queued, or for d.
func (r *receiver) rest(closing context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-closing.Done():
	}
}

// next removes the events of the next message from the queue, or returns how long to wait for it; neither if the queue is
// empty. With all, it waits for nothing.
func (r *receiver) next(now time.Time, all bool) (events []Event, dropped int, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.running = false
		return nil, 0, 0
	}
	due := func(e Event) time.Time { return r.last[e.typ].Add(Window) }
	first := slices.MinFunc(r.queue, func(x, y Event) int { return due(x).Compare(due(y)) })
	if wait := due(first).Sub(now); wait > 0 && !all {
		return nil, 0, wait
	}
	r.queue = slices.DeleteFunc(r.queue, func(e Event) bool {
		if e.typ != first.typ || len(events) == maxEvents {
			return false
		}
		events = append(events, e)
		return true
	})
	r.last[first.typ] = now
	dropped, r.dropped = r.dropped, 0
	return events, dropped, 0
}

// deliver sends a message, and again after an error that may pass.
func (r *receiver) deliver(closing, sending context.Context, m Message) {
	opts := r.alerts.opts
	what := m.Events[0].what()
	begun := time.Now()
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := r.attempt(sending, m)
		if err == nil {
			opts.Count(what, "sent", len(m.Events))
			return
		}
		after := delay(err, backoff)
		if after == retry.Never || time.Since(begun)+after > giveUp || sleep.For(closing, after) != nil {
			opts.Count(what, "failed", len(m.Events))
			opts.Logger.Warn("an alert was not sent", "receiver", r.name, "id", m.ID, "type", m.Type, "error", err)
			return
		}
		if backoff == minBackoff {
			opts.Logger.Warn("an alert cannot be sent, retrying", "receiver", r.name, "id", m.ID, "type", m.Type, "error", err)
		}
	}
}

// attempt sends a message once, to the receiver as it is in the settings now.
func (r *receiver) attempt(ctx context.Context, m Message) error {
	set, known := r.alerts.receiver(r.name)
	if !known {
		return failure{errors.New("it is no longer in the settings"), retry.Never}
	}
	_, err := r.alerts.sender.Send(ctx, set, m)
	return err
}

// delay returns the delay before the next attempt, or retry.Never.
func delay(err error, backoff time.Duration) time.Duration {
	f, ok := errors.AsType[failure](err)
	switch {
	case ok && f.after == retry.Never:
		return retry.Never
	case ok && f.after > 0:
		return min(f.after, maxAfter)
	}
	return backoff/2 + rand.N(backoff)
}

// markSent stores which approvals a receiver gets, which it may answer, and returns the events without those that it already got.
func (r *receiver) markSent(ctx context.Context, events []Event) []Event {
	return slices.DeleteFunc(events, func(e Event) bool {
		return e.typ == typeApproval && !r.alerts.isFirst(ctx, sentKey(r.name, e.Approval))
	})
}

func sentKey(receiver, approval string) store.Key { return store.Key{"approval", receiver, approval} }
