package toolcall

import (
	"context"
	"fmt"
	"log/slog"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Unknown is the error for an upstream or tool that is not there.
func Unknown(what, name, near string) *tool.Error {
	err := &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no %s %s", what, sanitize.Line(name, 150)), Hint: "find it with search_tools"}
	if near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return err
}

// Invalid is the error for a request that another try must change.
func Invalid(message, hint string) *tool.Error {
	return &tool.Error{Kind: tool.Invalid, Message: message, Hint: hint}
}

// NotOneOf is the error for a word that is none of those that may stand there.
func NotOneOf(what, word, hint string) *tool.Error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown %s %q", what, sanitize.Line(word, 40)), Hint: hint}
}

// ClosedError is the error of calls after the gateway was closed.
func ClosedError() *tool.Error {
	return &tool.Error{Kind: tool.Canceled, Message: "the gateway is closed"}
}

// Unreadable logs why records cannot be read and returns the error for the caller.
func Unreadable(ctx context.Context, log *slog.Logger, err error) error {
	log.ErrorContext(ctx, "records cannot be read", "error", err)
	return &tool.Error{Kind: tool.Internal, Message: "the records cannot be read", Hint: "the operator's log says why", Err: err}
}

// OperatorsOnly is the error for a caller that is no operator.
func OperatorsOnly(what string) error {
	return &tool.Error{Kind: tool.Denied, Message: what + " is for operators only", Hint: "a token with scope operate, or http.operators in upstreams.yaml, makes one"}
}
