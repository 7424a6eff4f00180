package toolcall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Unknown returns the error for an upstream or tool that does not exist.
func Unknown(what, name, near string) *tool.Error {
	err := &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no %s %s", what, sanitize.Line(name, 150)), Hint: "find it with search_tools"}
	if near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return err
}

// Invalid returns the error for an invalid request.
func Invalid(message, hint string) *tool.Error {
	return &tool.Error{Kind: tool.Invalid, Message: message, Hint: hint}
}

// NotOneOf returns the error for an unknown value of an enumeration.
func NotOneOf(what, word, hint string) *tool.Error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown %s %q", what, sanitize.Line(word, 40)), Hint: hint}
}

// ClosedError is the error of calls after the gateway was closed.
func ClosedError() *tool.Error {
	return &tool.Error{Kind: tool.Canceled, Message: "the gateway is closed"}
}

// Unavailable returns the error for a caller if err says that the store of records does not answer, or that the caller has canceled,
// else nil.
func Unavailable(err error) error {
	switch {
	case errors.Is(err, store.ErrUnreachable):
		return &tool.Error{Kind: tool.Busy, Message: "the store of records does not answer, so nothing new is started", Hint: "try again in some seconds: nothing was done", After: 5 * time.Second, Err: err}
	case errors.Is(err, context.Canceled):
		return tool.AsError(err)
	}
	return nil
}

// Unreadable logs why records cannot be read and returns the error for the caller.
func Unreadable(ctx context.Context, log *slog.Logger, err error) error {
	if down := Unavailable(err); down != nil {
		return down
	}
	log.ErrorContext(ctx, "records cannot be read", "error", err)
	return &tool.Error{Kind: tool.Internal, Message: "the records cannot be read", Hint: "the operator's log says why", Err: err}
}

// OperatorsOnly returns the error for a caller without the rights of an operator.
func OperatorsOnly(what string) error {
	return &tool.Error{Kind: tool.Denied, Message: what + " is for operators only", Hint: "a token with scope operate, or http.operators in upstreams.yaml, makes one"}
}
