package sandbox

import "sync"

// place is the one of Options.Parallel that a program has. While it waits for a person others may have it; a program that
// continues then does so without, where none is free: the answer must not wait, too.
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
