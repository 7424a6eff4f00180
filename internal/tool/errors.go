package tool

import (
	"context"
	"errors"
	"time"
)

// Kind says what sort of failure an [Error] is. Faces (MCP, HTTP, CLI) map it in one table each.
type Kind string

// The kinds of failure.
const (
	// Invalid: the arguments or the request are wrong; another try must differ.
	Invalid Kind = "invalid"
	// NotFound: no such upstream, tool, or thing.
	NotFound Kind = "not_found"
	// Denied: policy does not allow it.
	Denied Kind = "denied"
	// Limit: a metered limit is used up.
	Limit Kind = "limit"
	// Busy: there is more to do than can be done now; the same request can be made again, see [Error.After].
	Busy Kind = "busy"
	// Timeout: it took longer than it may.
	Timeout Kind = "timeout"
	// Canceled: the caller has gone.
	Canceled Kind = "canceled"
	// Upstream: the upstream is dead, unreachable, or speaks nonsense.
	Upstream Kind = "upstream"
	// Failed: the tool ran and reported an error itself (isError).
	Failed Kind = "failed"
	// Internal: our fault.
	Internal Kind = "internal"
)

// Error is a failure that a program or a model reads: short, specific, with the fix in Hint.
type Error struct {
	Kind    Kind
	Message string
	// Hint says what would be right; may be empty.
	Hint string
	// Retryable says that the same call may be made again: that it can succeed
	// then, and that it cannot have been done already, or that by the tool's own
	// word a second time does no harm.
	Retryable bool
	// After is for how long another try is of no use, 0 where that is not known. Hint says it in words.
	After time.Duration
	// Err is the cause, for logs; never shown to a model.
	Err error
}

// Error returns the message and the hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error; what is none becomes Timeout, Canceled or
// Internal, with a message that tells nothing of the inside.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: Timeout, Message: "timed out", Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Kind: Canceled, Message: "canceled", Err: err}
	}
	return &Error{Kind: Internal, Message: "internal error", Err: err}
}
