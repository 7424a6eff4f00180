// Package slot limits how many programs run at once.
package slot

import "sync"

// Slot is one of a number of slots, held by a program. The slot is free for others while the program waits for a
// person. If no slot is free when the program continues, it continues without one, so that it does not wait twice.
type Slot struct {
	slots chan struct{}
	mu    sync.Mutex
	held  bool
}

// Of returns a slot for which the caller has put a value into slots.
func Of(slots chan struct{}) *Slot { return &Slot{slots: slots, held: true} }

// SetPaused says that the program waits for a person, or continues.
func (p *Slot) SetPaused(still bool) {
	if still {
		p.Release()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.slots <- struct{}{}:
		p.held = true
	default:
	}
}

// Release makes the slot free, if it is held.
func (p *Slot) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		p.held = false
		<-p.slots
	}
}
