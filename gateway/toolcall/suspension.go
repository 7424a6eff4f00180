package toolcall

import (
	"context"
	"errors"
	"sync"
	"time"
)

// heldGrace is how long the other calls of a program may take to end that is held.
const heldGrace = 5 * time.Second

// Suspension stops a program that waits for people, in good order: calls under way end before.
type Suspension struct {
	mu    sync.Mutex
	stop  context.CancelFunc // of the program
	calls int                // under way
	still int                // of them, those that end with the program only
	asked int
	held  bool
	late  *time.Timer
	Turn  chan struct{} // a lock: one call at a time asks the client
}

// NewSuspension returns a suspension for one execution.
func NewSuspension() *Suspension { return &Suspension{Turn: make(chan struct{}, 1)} }

// Context returns the context of the program, which ends when it is held, and what is to be called after its end.
func (h *Suspension) Context(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	h.stop = cancel
	h.mu.Unlock()
	return ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.late != nil {
			h.late.Stop()
		}
		cancel()
	}
}

// Begin notes a call. Of a program that is held none begins: it waits for the program's end. Call end after it.
func (h *Suspension) Begin(ctx context.Context) (end func(), err error) {
	h.mu.Lock()
	if h.held {
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

// MayAsk counts what a program asks people, and says whether it may.
func (h *Suspension) MayAsk() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	return h.asked <= maxAsked
}

// Suspend notes that a call waits for the program's end, which comes when the other calls have ended, or soon.
func (h *Suspension) Suspend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.still++
	if !h.held {
		h.held = true
		h.late = time.AfterFunc(heldGrace, h.stop)
	}
	h.end()
}

// end stops the program if all that its calls do is wait for that. It is called with mu held.
func (h *Suspension) end() {
	if h.held && h.calls <= h.still {
		h.stop()
	}
}

// Suspended reports whether the program was stopped, or is about to be.
func (h *Suspension) Suspended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// ErrSuspended is the error of a call whose program was suspended.
var ErrSuspended = errors.New("the call waits for approval")

// maxAsked is about how much one execution may ask people.
const maxAsked = 32
