package toolcall

import (
	"context"
	"log/slog"
	"runtime/debug"

	"sallyport/internal/tool"
)

// Recover makes an error of a panic during a call, which would end the programs of all others, too. It is deferred.
func Recover(ctx context.Context, log *slog.Logger, c tool.Call, result *tool.Result, err *error) {
	if cause := recover(); cause != nil {
		log.ErrorContext(ctx, "panic during a call", "tool", c.Tool, "panic", cause, "stack", string(debug.Stack()))
		*result, *err = tool.Result{}, &tool.Error{Kind: tool.Internal, Message: "the gateway failed during the call", Hint: "it may have been done; the operator's log has the reason"}
	}
}
