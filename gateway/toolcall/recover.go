package toolcall

import (
	"context"
	"log/slog"
	"runtime/debug"

	"sallyport/internal/tool"
)

// Recover converts a panic during a call to an error. Defer it.
func Recover(ctx context.Context, log *slog.Logger, c tool.Call, result *tool.Result, err *error) {
	if cause := recover(); cause != nil {
		log.ErrorContext(ctx, "panic during a call", "tool", c.Tool, "panic", cause, "stack", string(debug.Stack()))
		*result, *err = tool.Result{}, &tool.Error{Kind: tool.Internal, Message: "the gateway failed during the call", Hint: "it may have been done; the operator's log has the reason"}
	}
}
