package secretstore

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"sallyport/internal/sanitize"
)

// Kind is what kept a secret from being read.
type Kind string

// The kinds of errors.
const (
	// Unreachable: the manager did not answer, or is overloaded. Trying again may help.
	Unreachable Kind = "unreachable"
	// Invalid: it answered something else than its API says.
	Invalid Kind = "invalid"
	// Refused: it does not let us read the secret, or we cannot authenticate to it.
	Refused Kind = "refused"
	// Missing: it has no such secret, or the reference is wrong.
	Missing Kind = "missing"
)

// Error says why a secret cannot be read, without any value.
type Error struct {
	Kind Kind
	// Message says what is wrong, Fix what to do; "" where the message does.
	Message, Fix string
	// after is how long the manager asks to be left alone.
	after time.Duration
}

// Error returns both texts.
func (e *Error) Error() string {
	if e.Fix == "" {
		return e.Message
	}
	return e.Message + "; " + e.Fix
}

// isTransient reports whether a cached value may be used in spite of it.
func (e *Error) isTransient() bool { return e.Kind == Unreachable || e.Kind == Invalid }

// about returns an error that names the secret.
func about(n name, err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Kind: Unreachable, Message: sanitize.Line(err.Error(), 160)}
	}
	return &Error{Kind: e.Kind, Message: n.String() + ": " + e.Message, Fix: e.Fix, after: e.after}
}

// statusError is the error of a status that says nothing about the secret itself, nil for a success.
func (r response) statusError(what string) *Error {
	switch {
	case r.status >= 200 && r.status <= 299:
		return nil
	case r.status >= 300 && r.status <= 399:
		return &Error{Kind: Invalid, Message: fmt.Sprintf("%s redirects to another address (HTTP %d)", what, r.status), Fix: "name the address that it is served at; redirects are not followed"}
	case r.status == http.StatusTooManyRequests, r.status >= 500:
		return &Error{Kind: Unreachable, Message: fmt.Sprintf("%s answers HTTP %d", what, r.status), Fix: "try again later", after: retryAfter(r.header)}
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		return &Error{Kind: Refused, Message: fmt.Sprintf("%s refuses (HTTP %d)", what, r.status)}
	case r.status == http.StatusNotFound:
		return &Error{Kind: Missing, Message: what + " does not have it (HTTP 404)"}
	}
	return &Error{Kind: Refused, Message: fmt.Sprintf("%s answers HTTP %d", what, r.status)}
}

// retryAfter returns the seconds of a header.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 3600 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// codeForm matches an error code of a manager. Its free texts are not shown: they may repeat what was sent.
var codeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]{0,60}$`)

func quoted(text string) string { return strconv.Quote(sanitize.Line(text, 80)) }
