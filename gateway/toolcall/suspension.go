package toolcall

import (
	"context"
	"errors"
	"sync"
	"time"
)

// suspendGrace is how long the other calls of a suspended program may take.
const suspendGrace = 5 * time.Second

// Suspension stops a program when one of its calls must wait for approval. Other calls end first. It is safe for concurrent use.
type Suspension struct {
	mu        sync.Mutex
	stop      context.CancelFunc // of the program
	calls     int                // in flight
	blocked   int                // of them, those that wait for approval
	asked     int
	suspended bool
	timer     *time.Timer
	Turn      chan struct{} // a lock: one call at a time asks the client
}

// NewSuspension returns a suspension for one execution.
func NewSuspension() *Suspension { return &Suspension{Turn: make(chan struct{}, 1)} }

// Context returns the context of the program, which ends when the program is suspended. Call release after the program.
func (h *Suspension) Context(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	h.stop = cancel
	h.mu.Unlock()
	return ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.timer != nil {
			h.timer.Stop()
		}
		cancel()
	}
}

// Begin counts a call in flight. Call end after it. During a suspension it waits for the end of the program.
func (h *Suspension) Begin(ctx context.Context) (end func(), err error) {
	h.mu.Lock()
	if h.suspended {
		h.mu.Unlock()
		<-ctx.Done()
		return nil, ErrSuspended
	}
	h.calls++
	h.mu.Unlock()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls--
		h.end()
	}, nil
}

// MayAsk counts a request for approval and reports whether the program may make it.
func (h *Suspension) MayAsk() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	return h.asked <= maxAsked
}

// Suspend stops the program when its other calls have ended, or after a grace period. The call that needs approval waits for that.
func (h *Suspension) Suspend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocked++
	if !h.suspended {
		h.suspended = true
		h.timer = time.AfterFunc(suspendGrace, h.stop)
	}
	h.end()
}

// end stops the program if all calls in flight wait for approval. mu must be held.
func (h *Suspension) end() {
	if h.suspended && h.calls <= h.blocked {
		h.stop()
	}
}

// Suspended reports whether the program was stopped, or is about to be.
func (h *Suspension) Suspended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.suspended
}

// ErrSuspended is the error of a call that was in flight when its program was suspended.
var ErrSuspended = errors.New("the call waits for approval")

// maxAsked is how many requests for approval one execution may make.
const maxAsked = 32
