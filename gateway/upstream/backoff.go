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
	// parkAfter is how many consecutive failures, without a working connection between them, park a session.
	parkAfter = 5
	parkMin   = time.Minute
	parkMax   = 24 * time.Minute // 30 with jitter
	// provenAfter is how long a link without a successful call must last to count as working.
	provenAfter = 10 * time.Second
)

// backoff delays the attempts: none before the first, then 200 ms doubling,
// then, parked, one minute doubling to 24, with a jitter of up to a quarter
// so that sessions do not retry at the same time.
type backoff struct {
	failures  int
	parks     int  // pauses of a parked session so far; 0 is not parked
	login     bool // the last failure requires a login
	permanent bool // the last failure is permanent
	until     time.Time
	forgiven  bool // a lost session since the last good link
}

// forgive reports whether a lost session needs no backoff although its link did not
// work yet: once, since a restarted server loses its sessions.
func (b *backoff) forgive(err error) bool {
	first := !b.forgiven && b.failures == 0 && errors.Is(err, mcp.ErrSessionMissing)
	b.forgiven = b.forgiven || first
	return first
}

// fail records a failure. One that requires a login parks at once.
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

// recordFailure records the failure of an attempt or a link. It is called with mu held.
func (s *Session) recordFailure(reason string, err error) {
	s.backoff.fail(needsLogin(err))
	e, ok := errors.AsType[*tool.Error](err)
	s.backoff.permanent = ok && !e.Retryable
	s.setStatus(s.backoff.status(), reason)
}

// Reset clears past failures: the next Call or Connect tries at once, and detects the
// upstream's protocol again. It has no effect on a session that is connected or
// connecting.
func (s *Session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings.Problem != "" {
		return // only new settings fix that
	}
	s.backoff = backoff{}
	s.dialer.forget()
	if s.state.Status == Failed || s.state.Status == Parked {
		s.setStatus(Idle, "")
	}
}

// backoffError is the error of an attempt during the backoff. It is called with mu held.
func (s *Session) backoffError(wait time.Duration) *tool.Error {
	e := &tool.Error{Kind: tool.Upstream, Message: s.state.Error, Hint: "next attempt in " + formatWait(wait), Retryable: !s.backoff.permanent}
	switch {
	case s.backoff.login: // the message has the remedy
		e.Kind, e.Hint, e.Retryable = tool.Denied, "", false
	case s.backoff.parks > 0:
		e.Hint = fmt.Sprintf("parked after %d failures: check the upstream; %s", s.backoff.failures, e.Hint)
	}
	return e
}

// problemError is the error of a session with invalid settings.
func (s *Session) problemError() *tool.Error {
	return &tool.Error{
		Kind: tool.Upstream, Message: "cannot connect to upstream " + s.settings.ID + ": " + sanitize.Line(s.settings.Problem, maxShownReason),
		Hint: "a person must fix the settings (see `sallyport doctor`); do without it",
	}
}

// formatWait formats a wait in minutes if it is long, else in seconds.
func formatWait(d time.Duration) string {
	if d >= time.Minute {
		return fmt.Sprintf("%d min", (d+time.Minute-1)/time.Minute)
	}
	return seconds(d)
}

// loginError is why an upstream refuses requests until a user acts; remedy is
// what to do, "" if reason includes it.
type loginError struct {
	reason, remedy string
	scope          bool // there is a login, which lacks a scope
}

// NeedsLogin reports whether a call was not made because there is no login.
func NeedsLogin(err error) bool {
	e, ok := errors.AsType[*loginError](err)
	return ok && !e.scope
}

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

// hasKey reports whether the settings have an Authorization header, which a login
// does not replace.
func hasKey(s Settings) bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}
