package upstream

import (
	"context"
	"sync"
)

// changes records the lists that an upstream reported as changed, until they are listed again.
type changes struct {
	mu    sync.Mutex
	parts parts
	// nextDone is closed when the tools have been listed for the changes after the last take; now is closed when the
	// listing in progress is done. nil for none.
	nextDone, currentDone chan struct{}
	changed               chan struct{} // signals a change; capacity 1
	urgent                chan struct{} // signals that a call waits for the list; capacity 1
}

func newChanges() *changes {
	return &changes{changed: make(chan struct{}, 1), urgent: make(chan struct{}, 1)}
}

func (c *changes) add(p parts) {
	c.mu.Lock()
	c.parts |= p
	if p&toolPart != 0 && c.nextDone == nil {
		c.nextDone = make(chan struct{})
	}
	c.mu.Unlock()
	signal(c.changed)
}

// take returns and clears the changed parts. The caller calls done when they have been listed.
func (c *changes) take() parts {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parts
	c.parts, c.currentDone, c.nextDone = 0, c.nextDone, nil
	return p
}

// finish wakes the calls that wait for the listing since the last take.
func (c *changes) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.currentDone != nil {
		close(c.currentDone)
		c.currentDone = nil
	}
}

// pending returns a channel that is closed when the tools reported as changed so far have been listed, nil if there are none.
func (c *changes) pending() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nextDone != nil {
		return c.nextDone
	}
	return c.currentDone
}

func signal(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

// awaitList waits until the list of tools includes the changes that the upstream reported, or its connection is lost.
func (s *Session) awaitList(ctx context.Context, l *link) error {
	pending := s.changed.pending()
	if pending == nil {
		return nil
	}
	signal(s.changed.urgent)
	select {
	case <-pending:
	case <-l.wire.dead:
	case <-s.stopped:
	case <-ctx.Done():
		return faults{s}.contextError(ctx)
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
	l, err := s.liveLink(ctx)
	if err != nil || l != known {
		return err
	}
	s.changed.add(toolPart)
	if err := s.awaitList(ctx, l); err != nil || l.alive() {
		return err
	}
	_, err = s.liveLink(ctx) // the listing found that the session was lost
	return err
}
