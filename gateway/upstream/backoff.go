package upstream

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/gateway/upstream/backoff"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// provenAfter is how long a link without a successful call must last to count as working.
const provenAfter = 10 * time.Second

// recordFailure records the failure of an attempt or a link. It is called with mu held.
func (s *Session) recordFailure(reason string, err error) {
	e, ok := errors.AsType[*tool.Error](err)
	s.backoff.Fail(needsLogin(err), ok && !e.Retryable)
	status := Failed
	if s.backoff.Parks > 0 {
		status = Parked
	}
	s.setStatus(status, reason)
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
	s.backoff = backoff.Backoff{}
	s.dialer.forget()
	if s.state.Status == Failed || s.state.Status == Parked {
		s.setStatus(Idle, "")
	}
}

// backoffError is the error of an attempt during the backoff. It is called with mu held.
func (s *Session) backoffError(wait time.Duration) *tool.Error {
	e := &tool.Error{Kind: tool.Upstream, Message: s.state.Error, Hint: "next attempt in " + formatWait(wait), Retryable: !s.backoff.Permanent}
	switch {
	case s.backoff.Login: // the message has the remedy
		e.Kind, e.Hint, e.Retryable = tool.Denied, "", false
	case s.backoff.Parks > 0:
		e.Hint = fmt.Sprintf("parked after %d failures: check the upstream; %s", s.backoff.Failures, e.Hint)
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
