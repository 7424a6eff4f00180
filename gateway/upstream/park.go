package upstream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	backoffMin = 200 * time.Millisecond
	backoffMax = 30 * time.Second
	// parkAfter is how many failures in a row, without a connection of use between them, park a session.
	parkAfter = 5
	parkMin   = time.Minute
	parkMax   = 24 * time.Minute // with what chance adds, 30
	// steady is how long a link without a single successful call must last to count as a good one.
	steady = 10 * time.Second
)

// backoff spaces the attempts: nothing before the first, then 200 ms doubling,
// then, parked, one minute doubling to 24; each up to a quarter longer by chance so
// that sessions do not try in step.
type backoff struct {
	failures int
	parks    int  // pauses of a parked session so far; 0 is not parked
	login    bool // the last failure was that somebody has to log in
	hopeless bool // the last failure will come again
	until    time.Time
	forgiven bool // a lost session since the last good link
}

// forgives reports whether a link is no reason to wait that did nothing before its
// session was lost: once, as a server that was started again loses it.
func (b *backoff) forgives(err error) bool {
	first := !b.forgiven && b.failures == 0 && errors.Is(err, mcp.ErrSessionMissing)
	b.forgiven = b.forgiven || first
	return first
}

// fail notes a failure. One that only a person can mend parks at once.
func (b *backoff) fail(login bool) {
	b.failures++
	b.login = login
	wait := min(backoffMin<<min(b.failures-1, 16), backoffMax)
	if login || b.parks > 0 || b.failures >= parkAfter {
		wait = min(parkMin<<min(b.parks, 16), parkMax)
		b.parks++
	}
	b.until = time.Now().Add(wait + rand.N(wait/4))
}

func (b *backoff) status() Status {
	if b.parks > 0 {
		return Parked
	}
	return Failed
}

// failed notes that an attempt or a link failed for that reason. It is called with mu held.
func (s *Session) failed(reason string, err error) {
	s.backoff.fail(needsLogin(err))
	e, ok := errors.AsType[*tool.Error](err)
	s.backoff.hopeless = ok && !e.Retryable
	s.setStatus(s.backoff.status(), reason)
}

// Reset forgets past failures: the next Call or Connect tries at once, and finds
// out again which protocol the upstream speaks. It leaves a session alone
// that is connected or connecting.
func (s *Session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings.Problem != "" {
		return // only other settings mend that
	}
	s.backoff = backoff{}
	s.dialer.forget()
	if s.state.Status == Failed || s.state.Status == Parked {
		s.setStatus(Idle, "")
	}
}

// tooSoon refuses an attempt while the backoff lasts. It is called with mu held.
func (s *Session) tooSoon(wait time.Duration) *tool.Error {
	e := &tool.Error{Kind: tool.Upstream, Message: s.state.Error, Hint: "next attempt in " + about(wait), Retryable: !s.backoff.hopeless}
	switch {
	case s.backoff.login: // says itself what to do
		e.Kind, e.Hint, e.Retryable = tool.Denied, "", false
	case s.backoff.parks > 0:
		e.Hint = fmt.Sprintf("parked after %d failures: somebody has to look at it; %s", s.backoff.failures, e.Hint)
	}
	return e
}

// unusable is why settings with a problem lead nowhere.
func (s *Session) unusable() *tool.Error {
	return &tool.Error{
		Kind: tool.Upstream, Message: "cannot connect to upstream " + s.settings.ID + ": " + sanitize.Line(s.settings.Problem, shownReason),
		Hint: "somebody has to mend the settings, do without it; `sallyport doctor` says how",
	}
}

// about is seconds for a wait that may be long.
func about(d time.Duration) string {
	if d >= time.Minute {
		return fmt.Sprintf("%d min", (d+time.Minute-1)/time.Minute)
	}
	return seconds(d)
}

// loginError is why an upstream refuses us until a user does something about
// it; remedy is what, "" if reason says it.
type loginError struct{ reason, remedy string }

func (e *loginError) Error() string {
	if e.remedy == "" {
		return e.reason
	}
	return e.reason + "; " + e.remedy
}

func needsLogin(err error) bool {
	_, ok := errors.AsType[*loginError](err)
	return ok
}

// hasKey reports whether the settings have an authorization of their own, which
// no login can mend.
func hasKey(s Settings) bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}
