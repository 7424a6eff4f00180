//go:build linux

package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"sallyport/sandbox/bridge"
)

// maxSessions is the maximum number of open sessions. Beyond it the session that has been idle longest is closed.
const maxSessions = 16

// sessions keeps the sandboxes with interpreters that outlive a program.
type sessions struct {
	host *Host
	idle time.Duration

	mu   sync.Mutex
	open map[sessionKey]*session
}

// sessionKey identifies a session. Limits are not part of it: a session keeps its initial limits.
type sessionKey struct {
	name, environment string
	interpreter       Interpreter
}

// session is one interpreter, possibly not started yet.
type session struct {
	sem      chan struct{} // capacity 1: a semaphore that guards box
	instance *instance     // nil if none is running
	timer    *time.Timer
	lastUsed time.Time
	users    int // programs that use it or wait for it; guarded by sessions.mu
}

// run runs a job in the sandbox of its session, after the session's earlier jobs.
func (s *sessions) run(ctx context.Context, job Job, caller bridge.Caller) (Outcome, error) {
	key := sessionKey{job.Session, job.Environment, job.Interpreter}
	kept := s.acquire(key)
	defer s.release(key, kept)
	select {
	case kept.sem <- struct{}{}:
	case <-ctx.Done():
		return Outcome{Status: Canceled}, nil
	case <-s.host.ctx.Done():
		return Outcome{}, context.Cause(s.host.ctx)
	}
	defer func() { <-kept.sem }()
	for again := true; ; again = false {
		reused, waited, err := s.ensure(ctx, kept, job)
		if err != nil {
			return canceledOr(ctx, err)
		}
		outcome, err := kept.instance.run(ctx, job, caller)
		outcome.Reused = reused
		if !kept.instance.reusable || err != nil {
			kept.instance.discard()
			kept.instance = nil
		}
		if (waited || reused) && ctx.Err() == nil && (errors.Is(err, errNotStarted) || again && waited && outcome.hasNoEffects()) {
			continue
		}
		return outcome, err
	}
}

// ensure gives the session a live sandbox. reused reports whether it is the one of its last program,
// waited whether it comes from the pool.
func (s *sessions) ensure(ctx context.Context, kept *session, job Job) (reused, waited bool, err error) {
	if kept.instance != nil && kept.instance.alive(ctx) {
		return true, false, nil
	}
	if kept.instance != nil {
		kept.instance.discard()
		kept.instance = nil
	}
	kept.instance, waited, err = s.host.pool.get(ctx, job)
	return false, waited, err
}

// acquire returns the session of that key and counts a user of it.
func (s *sessions) acquire(key sessionKey) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.open[key]
	if kept == nil {
		kept = &session{sem: make(chan struct{}, 1)}
		s.open[key] = kept
	}
	kept.users++
	if kept.timer != nil {
		kept.timer.Stop()
		kept.timer = nil
	}
	return kept
}

// release undoes enter. An unused session expires after s.idle.
func (s *sessions) release(key sessionKey, kept *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept.users--
	if kept.users > 0 {
		return
	}
	if kept.instance == nil || s.host.ctx.Err() != nil {
		s.remove(key, kept)
		return
	}
	kept.lastUsed = time.Now()
	kept.timer = time.AfterFunc(s.idle, func() { s.expire(key, kept) })
	s.evictOldest()
}

func (s *sessions) expire(key sessionKey, kept *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept.users == 0 && s.open[key] == kept && time.Since(kept.lastUsed) >= s.idle {
		s.remove(key, kept)
	}
}

// evictOldest closes the sessions that have been idle longest until there are at most maxSessions. It is called with mu held.
func (s *sessions) evictOldest() {
	for len(s.open) > maxSessions {
		var oldest *session
		var which sessionKey
		for key, kept := range s.open {
			if kept.users == 0 && (oldest == nil || kept.lastUsed.Before(oldest.lastUsed)) {
				which, oldest = key, kept
			}
		}
		if oldest == nil {
			return
		}
		s.remove(which, oldest)
	}
}

// remove removes an unused session and discards its sandbox. It is called with mu held.
func (s *sessions) remove(key sessionKey, kept *session) {
	delete(s.open, key)
	if kept.timer != nil {
		kept.timer.Stop()
	}
	if kept.instance != nil {
		kept.instance.discard()
		kept.instance = nil
	}
}

// closeAll ends all sessions; no program runs any more.
func (s *sessions) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, kept := range s.open {
		s.remove(key, kept)
	}
}
