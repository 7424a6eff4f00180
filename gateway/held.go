package gateway

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sallyport/internal/approval"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Held is the status of an execution that was stopped since a call of it waits for approval. What it did
// is in its journal: the execution that resumes it does not do that again.
const Held sandbox.Status = "held"

// heldGrace is how long the other calls of a program may take to end that is held.
const heldGrace = 5 * time.Second

// holding stops a program that waits for people, in good order: calls under way end before.
type holding struct {
	mu    sync.Mutex
	stop  context.CancelFunc // of the program
	calls int                // under way
	still int                // of them, those that end with the program only
	asked int
	held  bool
	late  *time.Timer
	turn  chan struct{} // a lock: one call at a time asks the client
}

func newHolding() *holding { return &holding{turn: make(chan struct{}, 1)} }

// within returns the context of the program, which ends when it is held, and what is to be called after its end.
func (h *holding) within(ctx context.Context) (context.Context, func()) {
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

// begin notes a call. Of a program that is held none begins: it waits for the program's end. Call end after it.
func (h *holding) begin(ctx context.Context) (end func(), err error) {
	h.mu.Lock()
	if h.held {
		h.mu.Unlock()
		<-ctx.Done()
		return nil, errHeld
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

// mayAsk counts what a program asks people, and says whether it may.
func (h *holding) mayAsk() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	return h.asked <= maxAsked
}

// hold notes that a call waits for the program's end, which comes when the other calls have ended, or soon.
func (h *holding) hold() {
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
func (h *holding) end() {
	if h.held && h.calls <= h.still {
		h.stop()
	}
}

func (h *holding) isHeld() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// settleHeld says of an execution that was stopped for it what it waits for. One that ended otherwise waits for nothing.
func (g *Gateway) settleHeld(ctx context.Context, e *Execution, r *running) {
	if !r.holding.isHeld() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	all, err := g.approvals.book.List(ctx)
	if err != nil {
		g.log.ErrorContext(ctx, "approvals cannot be read", "execution", e.ID, "error", err)
	}
	for _, a := range all {
		switch {
		case a.Execution != e.ID || a.Principal != tool.Principal(ctx) || a.State != approval.Waiting:
		case e.Status == sandbox.Canceled:
			e.Approvals = append(e.Approvals, a)
		default:
			if err := g.approvals.book.Withdraw(ctx, a.ID); err != nil {
				g.log.WarnContext(ctx, "approval is not withdrawn", "approval", a.ID, "error", err)
			}
		}
	}
	if e.Status == sandbox.Canceled {
		e.Status = Held
	}
	g.approvals.watchers.tell()
}

// heldText tells what a person has to do, and then the model.
func (e Execution) heldText() string {
	var b strings.Builder
	b.WriteString("held: it needs approval, and nobody could be asked in time.")
	if len(e.Approvals) == 0 {
		b.WriteString(" It is answered by now.")
	}
	for _, a := range e.Approvals[:min(len(e.Approvals), maxSaid)] {
		b.WriteString("\n" + a.Tool)
		if why := cmp.Or(a.Reason, a.Rule); why != "" {
			b.WriteString(" (" + plain.Line(why, 150) + ")")
		}
		b.WriteString(": sallyport approvals approve " + a.ID)
		if a.Doubt {
			b.WriteString(" (make it), done (it was done), or deny (leave it)")
		}
	}
	if !e.journaled {
		b.WriteString("\nTell the user, and run it again when somebody can answer: no journal of it is kept, so calls that were made are made again.")
		return b.String()
	}
	fmt.Fprintf(&b, "\nTell the user. Once approved, go on with execute_code(code=\"\", resume=%q): calls that were made are not made again.", e.ID)
	return b.String()
}
