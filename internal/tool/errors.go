package tool

import (
	"context"
	"errors"
	"time"
)

// Kind is the kind of an [Error]. Each API (MCP, HTTP, CLI) maps it in one table.
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
	// Busy: the gateway is overloaded; the same request can be retried, see [Error.After].
	Busy Kind = "busy"
	// Timeout: it exceeded its time limit.
	Timeout Kind = "timeout"
	// Canceled: the caller disconnected or cancelled.
	Canceled Kind = "canceled"
	// Upstream: the upstream is dead, unreachable, or violates the protocol.
	Upstream Kind = "upstream"
	// Failed: the tool ran and reported an error itself (isError).
	Failed Kind = "failed"
	// Internal: a fault of the gateway.
	Internal Kind = "internal"
)

// Error is a failure that a program or a model reads: short, specific, with the fix in Hint.
type Error struct {
	Kind    Kind
	Message string
	// Hint says how to fix it; may be empty.
	Hint string
	// Retryable means that the same call may be repeated: it can succeed then, and either it cannot have been executed
	// already, or the tool declares that a repetition does no harm.
	Retryable bool
	// After is how long a retry is pointless, 0 if unknown. Hint says it in words.
	After time.Duration
	// Rule is the rule of the policy or the budget that refused it, for the audit log; "" for none.
	Rule string
	// Err is the cause, for logs; never shown to a model.
	Err error
}

// MetaError is the member of a result's _meta with an Error that is not the tool's own, as an object with kind, message, hint and
// retryable.
const MetaError = "sallyport/error"

// Error returns the message and the hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error; any other error becomes Timeout, Canceled or Internal, with a message that
// reveals no internals.
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
