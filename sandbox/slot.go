package sandbox

import "sync"

// slot is one of the Options.Parallel slots, held by a program. The slot is free for others while the program waits for a
// person. If no slot is free when the program continues, it continues without one, so that it does not wait twice.
type slot struct {
	slots chan struct{}
	mu    sync.Mutex
	held  bool
}

func (p *slot) setPaused(still bool) {
	if still {
		p.release()
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

func (p *slot) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		p.held = false
		<-p.slots
	}
}
