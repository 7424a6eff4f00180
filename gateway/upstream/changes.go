package upstream

import (
	"context"
	"sync"
)

// changes records the lists that an upstream reported as changed, until they are listed again.
type changes struct {
	mu    sync.Mutex
	parts parts
	// next is closed when the tools have been listed for the changes after the last take; now is closed when the
	// listing in progress is done. nil for none.
	next, now chan struct{}
	note      chan struct{} // signals a change; capacity 1
	hurry     chan struct{} // signals that a call waits for the list; capacity 1
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

// take returns and clears the changed parts. The caller calls done when they have been listed.
func (c *changes) take() parts {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parts
	c.parts, c.now, c.next = 0, c.next, nil
	return p
}

// done wakes the calls that wait for the listing since the last take.
func (c *changes) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		close(c.now)
		c.now = nil
	}
}

// pending returns a channel that is closed when the tools reported as changed so far have been listed, nil if there are none.
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

// listed waits until the list of tools includes the changes that the upstream reported, or its connection is lost.
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

// Refresh connects, or lists the tools of a connected upstream again.
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
	_, err = s.connected(ctx) // the listing found that the session was lost
	return err
}
