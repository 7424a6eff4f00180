// Package serial admits calls one at a time from some moment on. Its type is [Gate].
package serial

import (
	"context"
	"sync"
)

// Gate admits calls that have a peer. They are concurrent until the upstream sends a
// request over a connection that does not tell for which call; from then on they run
// one at a time, so that the request is unambiguous. It is safe for concurrent use.
type Gate struct {
	mu     sync.Mutex
	serial bool
	active int
	freed  chan struct{} // closed when a call leaves; nil unless another waits
}

// Enter waits until the call may run. The error is that of ctx.
func (g *Gate) Enter(ctx context.Context) error {
	for {
		g.mu.Lock()
		if !g.serial || g.active == 0 {
			g.active++
			g.mu.Unlock()
			return nil
		}
		if g.freed == nil {
			g.freed = make(chan struct{})
		}
		freed := g.freed
		g.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Leave ends a call that was admitted.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	if g.freed != nil {
		close(g.freed)
		g.freed = nil
	}
}

// Serialize makes calls run one at a time from now on.
func (g *Gate) Serialize() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serial = true
}
