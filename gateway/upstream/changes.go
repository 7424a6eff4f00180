package upstream

import (
	"context"
	"sync"
)

// changes are the lists that an upstream reported as changed, until they are listed again.
type changes struct {
	mu    sync.Mutex
	parts parts
	// next is closed when the list that is to be made of the tools has been taken over, now that of the one that is
	// being made; nil for none.
	next, now chan struct{}
	note      chan struct{} // holds one
	hurry     chan struct{} // somebody waits for the list; holds one
}

func newChanges() *changes {
	return &changes{note: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

func (c *changes) add(p parts) {
	c.mu.Lock()
	c.parts |= p
	if p&toolPart != 0 && c.next == nil {
		c.next = make(chan struct{})
	}
	c.mu.Unlock()
	raise(c.note)
}

// take returns the parts, and forgets them. When they have been listed, done is called.
func (c *changes) take() parts {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parts
	c.parts, c.now, c.next = 0, c.next, nil
	return p
}

// done lets those go on who wait for what take began.
func (c *changes) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		close(c.now)
		c.now = nil
	}
}

// pending returns what is closed when the tools have been listed that are said to have changed so far, nil if none are.
func (c *changes) pending() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		return c.next
	}
	return c.now
}

func raise(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

// listed waits until the list of tools is one that the upstream has not called out of date, or its connection is gone.
func (s *Session) listed(ctx context.Context, l *link) error {
	pending := s.changed.pending()
	if pending == nil {
		return nil
	}
	raise(s.changed.hurry)
	select {
	case <-pending:
	case <-l.wire.dead:
	case <-s.stopped:
	case <-ctx.Done():
		return faults{s}.gaveUp(ctx)
	}
	return nil
}

// Refresh connects, or asks a connected upstream again for its tools.
func (s *Session) Refresh(ctx context.Context) error {
	queue{s}.use()
	defer queue{s}.unuse()
	s.mu.Lock()
	known := s.link
	s.mu.Unlock()
	l, err := s.connected(ctx)
	if err != nil || l != known {
		return err
	}
	s.changed.add(toolPart)
	if err := s.listed(ctx, l); err != nil || l.alive() {
		return err
	}
	_, err = s.connected(ctx) // it has found that the session is over
	return err
}
