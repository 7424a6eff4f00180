package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/backoff"
	"sallyport/internal/tool"
)

const (
	// relistDelay combines a burst of list_changed notifications into one listing.
	relistDelay = 100 * time.Millisecond
	// relistGap is the minimum time between two listings.
	relistGap = time.Second
	// urgentGap is relistGap where a call waits for the list.
	urgentGap = 100 * time.Millisecond
)

// attempt is one attempt to connect, shared by all callers that wait for it. link and
// err may be read once done is closed.
type attempt struct {
	done chan struct{}
	link *link
	err  *tool.Error
}

// liveLink returns the live link, connecting first if needed.
func (s *Session) liveLink(ctx context.Context) (*link, error) {
	s.mu.Lock()
	l, a, err := s.joinAttempt()
	s.mu.Unlock()
	if err != nil || l != nil {
		return l, err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, faults{s}.contextError(ctx)
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.link, nil
}

// joinAttempt returns the live link, or the attempt to wait for, or an error if there is
// neither. It is called with mu held.
func (s *Session) joinAttempt() (*link, *attempt, error) {
	if s.state.Status == Closed {
		return nil, nil, faults{s}.closedError()
	}
	if s.settings.Problem != "" {
		return nil, nil, s.problemError()
	}
	if s.attempt == nil && s.link != nil && s.link.alive() { // during an attempt OnOffer has not been called yet
		return s.link, nil, nil
	}
	s.dropDeadLink()
	if s.attempt != nil {
		return nil, s.attempt, nil
	}
	if wait := time.Until(s.backoff.Until); wait > 0 {
		return nil, nil, s.backoffError(wait)
	}
	s.attempt = &attempt{done: make(chan struct{})}
	s.setStatus(Connecting, s.state.Error) // the last failure stays known until the attempt ends
	s.startLoop()
	s.wake <- struct{}{} // does not block: only one attempt exists
	return nil, s.attempt, nil
}

// dropDeadLink records the loss of a dead link and closes it in the background. It is called with mu held.
func (s *Session) dropDeadLink() {
	l := s.link
	if l == nil || l.alive() || s.state.Status == Closed {
		return
	}
	s.link = nil
	err := l.wire.reason()
	if l.proven() {
		s.backoff = backoff.Backoff{}
	}
	// An upstream that worked is retried at once; one that dies before its first
	// successful call, or that requires a login, is not, unless its secret may have been replaced.
	if reason := (faults{s}).lostError(err).Error(); l.proven() && (!needsLogin(err) || s.settings.Managed) || s.backoff.Forgive(errors.Is(err, mcp.ErrSessionMissing)) {
		s.setStatus(Failed, reason)
	} else {
		s.recordFailure(reason, err)
	}
	s.log.Warn("upstream lost", "reason", s.state.Error)
	s.closingLinks.Go(l.close)
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

// loop is the only goroutine that connects, lists and calls OnOffer. Close ends it and waits.
func (s *Session) loop(ctx context.Context) {
	defer close(s.stopped)
	var lost <-chan struct{}
	var relist, idle <-chan time.Time
	var listed time.Time
	for {
		select {
		case <-ctx.Done():
			s.finishAttempt(nil, faults{s}.closedError())
			return
		case <-s.wake:
			lost = s.connect(ctx)
			idle = queue{s}.stopIfIdle()
		case <-lost:
			lost = nil
			s.mu.Lock()
			s.dropDeadLink()
			s.mu.Unlock()
		case <-idle:
			idle = queue{s}.stopIfIdle()
		case <-s.changed.changed:
			if relist == nil {
				relist = time.After(max(relistDelay, relistGap-time.Since(listed)))
			}
		case <-s.changed.urgent:
			if s.changed.pending() != nil {
				relist = time.After(urgentGap - time.Since(listed))
			}
		case <-relist:
			relist, listed = nil, time.Now()
			s.relist(ctx)
		}
	}
}

// connect makes the requested attempt and returns a channel that is closed when the new link dies.
func (s *Session) connect(ctx context.Context) <-chan struct{} {
	limited, cancel := context.WithTimeout(ctx, s.opts.ConnectTimeout)
	defer cancel()
	l, listed, err := s.dialer.dial(limited)
	switch {
	case ctx.Err() != nil:
		if l != nil {
			l.close()
		}
		return nil // the loop ends the attempt
	case err != nil:
		s.finishAttempt(nil, faults{s}.connectError(limited, err))
		return nil
	}
	if s.adopt(l, listed) {
		s.opts.OnOffer(s.Offer())
	}
	s.finishAttempt(l, nil)
	return l.wire.dead
}

// adopt makes l the live link and reports whether its offer differs from the known one.
func (s *Session) adopt(l *link, listed listing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = l
	s.setStatus(Ready, "")
	s.state.ServerName, s.state.ServerVersion, s.state.Protocol = l.name, l.version, l.protocol
	s.log.Info("upstream ready", "server", l.name, "version", l.version, "protocol", l.protocol, "tools", len(listed.offer.Tools))
	return s.catalog.merge(listed)
}

// finishAttempt finishes the attempt for all callers that wait for it.
func (s *Session) finishAttempt(l *link, err *tool.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.state.Status != Closed {
		s.recordFailure(err.Error(), err)
		s.log.Warn("connect to upstream", "reason", err.Error())
	}
	if a := s.attempt; a != nil {
		s.attempt, a.link, a.err = nil, l, err
		close(a.done)
	}
}

// relist requests the changed lists again. It keeps the old list if that fails.
func (s *Session) relist(ctx context.Context) {
	wanted := s.changed.take()
	defer s.changed.finish()
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
		s.log.Warn("list again", "reason", s.redactor.describe(err))
		return
	}
	s.mu.Lock()
	differs := s.catalog.merge(listed)
	s.mu.Unlock()
	if differs {
		s.opts.OnOffer(s.Offer())
	}
}
