package sandbox

import "sync"

// place is one of the Options.Parallel slots, held by a program. The slot is free for others while the program waits for a
// person. If no slot is free when the program continues, it continues without one, so that it does not wait twice.
type place struct {
	slots chan struct{}
	mu    sync.Mutex
	taken bool
}

func (p *place) still(still bool) {
	if still {
		p.leave()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.slots <- struct{}{}:
		p.taken = true
	default:
	}
}

func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken {
		p.taken = false
		<-p.slots
	}
}
