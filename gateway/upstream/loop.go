package upstream

import (
	"context"
	"time"

	"sallyport/internal/tool"
)

const (
	// relistDelay gathers a burst of list_changed into one list.
	relistDelay = 100 * time.Millisecond
	// relistGap keeps an upstream that says so without end from being listed without end.
	relistGap = time.Second
	// hurriedGap is relistGap where a call waits for the list.
	hurriedGap = 100 * time.Millisecond
)

// attempt is one try to connect, shared by all who wait for it. link and err
// may be read once done is closed.
type attempt struct {
	done chan struct{}
	link *link
	err  *tool.Error
}

// connected returns the live link, making it first if needed.
func (s *Session) connected(ctx context.Context) (*link, error) {
	s.mu.Lock()
	l, a, err := s.join()
	s.mu.Unlock()
	if err != nil || l != nil {
		return l, err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, faults{s}.gaveUp(ctx)
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.link, nil
}

// join returns the live link, or the attempt to wait for, or why there is
// neither. It is called with mu held.
func (s *Session) join() (*link, *attempt, error) {
	if s.state.Status == Closed {
		return nil, nil, faults{s}.closedError()
	}
	if s.settings.Problem != "" {
		return nil, nil, s.unusable()
	}
	if s.attempt == nil && s.link != nil && s.link.alive() { // during an attempt OnOffer has not been told yet
		return s.link, nil, nil
	}
	s.bury()
	if s.attempt != nil {
		return nil, s.attempt, nil
	}
	if wait := time.Until(s.backoff.until); wait > 0 {
		return nil, nil, s.tooSoon(wait)
	}
	s.attempt = &attempt{done: make(chan struct{})}
	s.setStatus(Connecting, "")
	s.startLoop()
	s.wake <- struct{}{} // there is room: only one attempt exists
	return nil, s.attempt, nil
}

// bury notes that the link is dead, if it is, and has it cleaned up. It is called with mu held.
func (s *Session) bury() {
	l := s.link
	if l == nil || l.alive() || s.state.Status == Closed {
		return
	}
	s.link = nil
	err := l.wire.reason()
	if l.proven() {
		s.backoff = backoff{}
	}
	// An upstream that worked is tried again at once; one that dies before it has
	// done anything, or that does not let us in any more, is not.
	if reason := (faults{s}).lostError(err).Error(); l.proven() && !needsLogin(err) || s.backoff.forgives(err) {
		s.setStatus(Failed, reason)
	} else {
		s.failed(reason, err)
	}
	s.log.Warn("upstream lost", "reason", s.state.Error)
	s.burying.Go(l.close)
}

// startLoop is called with mu held.
func (s *Session) startLoop() {
	if s.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.loop(ctx)
}

// loop is the one goroutine that connects, lists and calls OnTools. Close ends it and waits.
func (s *Session) loop(ctx context.Context) {
	defer close(s.stopped)
	var lost <-chan struct{}
	var relist, idle <-chan time.Time
	var listed time.Time
	for {
		select {
		case <-ctx.Done():
			s.settle(nil, faults{s}.closedError())
			return
		case <-s.wake:
			lost = s.connect(ctx)
			idle = queue{s}.rest()
		case <-lost:
			lost = nil
			s.mu.Lock()
			s.bury()
			s.mu.Unlock()
		case <-idle:
			idle = queue{s}.rest()
		case <-s.changed.note:
			if relist == nil {
				relist = time.After(max(relistDelay, relistGap-time.Since(listed)))
			}
		case <-s.changed.hurry:
			if s.changed.pending() != nil {
				relist = time.After(hurriedGap - time.Since(listed))
			}
		case <-relist:
			relist, listed = nil, time.Now()
			s.relist(ctx)
		}
	}
}

// connect makes the attempt that was asked for and returns what closes when the new link dies.
func (s *Session) connect(ctx context.Context) <-chan struct{} {
	limited, cancel := context.WithTimeout(ctx, s.opts.ConnectTimeout)
	defer cancel()
	l, listed, err := s.dialer.dial(limited)
	switch {
	case ctx.Err() != nil:
		if l != nil {
			l.close()
		}
		return nil // the loop ends and tells those who wait
	case err != nil:
		s.settle(nil, faults{s}.connectError(limited, err))
		return nil
	}
	if s.adopt(l, listed) {
		s.opts.OnOffer(s.Offer())
	}
	s.settle(l, nil)
	return l.wire.dead
}

// adopt makes l the live link and reports whether its offer differs from the one known.
func (s *Session) adopt(l *link, listed harvest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = l
	s.setStatus(Ready, "")
	s.state.ServerName, s.state.ServerVersion, s.state.Protocol = l.name, l.version, l.protocol
	s.log.Info("upstream ready", "server", l.name, "version", l.version, "protocol", l.protocol, "tools", len(listed.offer.Tools))
	return s.catalog.merge(listed)
}

// settle ends the attempt for all who wait for it.
func (s *Session) settle(l *link, err *tool.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.state.Status != Closed {
		s.failed(err.Error(), err)
		s.log.Warn("connect to upstream", "reason", err.Error())
	}
	if a := s.attempt; a != nil {
		s.attempt, a.link, a.err = nil, l, err
		close(a.done)
	}
}

// relist asks again for what has changed. A list that cannot be had leaves the old one.
func (s *Session) relist(ctx context.Context) {
	wanted := s.changed.take()
	defer s.changed.done()
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l == nil || !l.alive() {
		return // the next connection lists anyway
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.ConnectTimeout)
	defer cancel()
	listed, err := l.list(limited, wanted)
	if err != nil {
		s.log.Warn("list again", "reason", s.veil.describe(err))
		return
	}
	s.mu.Lock()
	differs := s.catalog.merge(listed)
	s.mu.Unlock()
	if differs {
		s.opts.OnOffer(s.Offer())
	}
}
