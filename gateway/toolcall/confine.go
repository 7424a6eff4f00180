package toolcall

import (
	"context"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// WithOnly returns a context in which executions may call only these upstreams; nil does not restrict them further.
func WithOnly(ctx context.Context, upstreams []string) context.Context {
	if upstreams == nil {
		return ctx
	}
	s := ScopeOf(ctx)
	s.Only = slices.Clone(upstreams)
	return s.In(ctx)
}

// Confine is middleware that refuses calls of an execution to upstreams that it may not call.
func Confine(next Handler) Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if x := ExecutionOf(ctx); x != nil && x.Only != nil && !slices.Contains(x.Only, c.Tool.Upstream) {
			return tool.Result{}, &tool.Error{Kind: tool.Denied, Message: c.Tool.String() + ": this task may not use upstream " + c.Tool.Upstream, Hint: "it may use only " + strings.Join(x.Only, ", ")}
		}
		return next(ctx, c)
	}
}
