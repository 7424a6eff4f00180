//go:build linux

package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"sallyport/sandbox/bridge"
)

// maxSessions is how many interpreters of sessions wait at most. The one that has waited longest makes room.
const maxSessions = 16

// sessions keeps the sandboxes with interpreters that outlive a program.
type sessions struct {
	host *Host
	idle time.Duration

	mu   sync.Mutex
	open map[sessionKey]*session
}

// sessionKey tells sessions apart. Limits are not part of it: a session keeps those that it began with.
type sessionKey struct {
	name, environment string
	interpreter       Interpreter
}

// session is one interpreter, or the place of one that comes.
type session struct {
	turn  chan struct{} // holds one: whoever has it may use box
	box   *box          // nil: there is none yet, or no more
	timer *time.Timer
	last  time.Time
	users int // programs that have it or wait for it; guarded by sessions.mu
}

// run runs a job where the last one of its session has, which it waits for.
func (s *sessions) run(ctx context.Context, job Job, caller bridge.Caller) (Outcome, error) {
	key := sessionKey{job.Session, job.Environment, job.Interpreter}
	kept := s.enter(key)
	defer s.leave(key, kept)
	select {
	case kept.turn <- struct{}{}:
	case <-ctx.Done():
		return Outcome{Status: Canceled}, nil
	case <-s.host.ctx.Done():
		return Outcome{}, context.Cause(s.host.ctx)
	}
	defer func() { <-kept.turn }()
	for again := true; ; again = false {
		reused, waited, err := s.ensure(ctx, kept, job)
		if err != nil {
			return canceledOr(ctx, err)
		}
		outcome, err := kept.box.run(ctx, job, caller)
		outcome.Reused = reused
		if !kept.box.stays || err != nil {
			kept.box.discard()
			kept.box = nil
		}
		if (waited || reused) && ctx.Err() == nil && (errors.Is(err, errNotStarted) || again && waited && outcome.withoutTrace()) {
			continue
		}
		return outcome, err
	}
}

// ensure gives the session a sandbox, and reports whether it is the one of its last program.
func (s *sessions) ensure(ctx context.Context, kept *session, job Job) (reused, waited bool, err error) {
	if kept.box != nil && kept.box.alive(ctx) {
		return true, false, nil
	}
	if kept.box != nil {
		kept.box.discard()
		kept.box = nil
	}
	kept.box, waited, err = s.host.pool.get(ctx, job)
	return false, waited, err
}

// enter returns the session of that key, in use.
func (s *sessions) enter(key sessionKey) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.open[key]
	if kept == nil {
		kept = &session{turn: make(chan struct{}, 1)}
		s.open[key] = kept
	}
	kept.users++
	if kept.timer != nil {
		kept.timer.Stop()
		kept.timer = nil
	}
	return kept
}

// leave is the end of what enter began. An unused session ends after a while.
func (s *sessions) leave(key sessionKey, kept *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept.users--
	if kept.users > 0 {
		return
	}
	if kept.box == nil || s.host.ctx.Err() != nil {
		s.end(key, kept)
		return
	}
	kept.last = time.Now()
	kept.timer = time.AfterFunc(s.idle, func() { s.expire(key, kept) })
	s.makeRoom()
}

func (s *sessions) expire(key sessionKey, kept *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept.users == 0 && s.open[key] == kept && time.Since(kept.last) >= s.idle {
		s.end(key, kept)
	}
}

// makeRoom ends the session that has waited longest, if there are too many. It is called with mu held.
func (s *sessions) makeRoom() {
	for len(s.open) > maxSessions {
		var oldest *session
		var which sessionKey
		for key, kept := range s.open {
			if kept.users == 0 && (oldest == nil || kept.last.Before(oldest.last)) {
				which, oldest = key, kept
			}
		}
		if oldest == nil {
			return
		}
		s.end(which, oldest)
	}
}

// end is called with mu held, for an unused session.
func (s *sessions) end(key sessionKey, kept *session) {
	delete(s.open, key)
	if kept.timer != nil {
		kept.timer.Stop()
	}
	if kept.box != nil {
		kept.box.discard()
		kept.box = nil
	}
}

// closeAll ends all sessions; no program runs any more.
func (s *sessions) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, kept := range s.open {
		s.end(key, kept)
	}
}
