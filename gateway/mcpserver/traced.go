package mcpserver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/telemetry"
)

// traceparent names the trace that a request is part of: a header over HTTP, and a member of _meta.
const traceparent = "traceparent"

// traced begins the span of each request of a client, in its trace if it names one, and measures it. What a client sends
// of its own accord (notifications) is neither.
func traced(t *telemetry.Telemetry) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		if t == nil {
			return next
		}
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if strings.HasPrefix(method, "notifications/") {
				return next(ctx, method, req)
			}
			begun, name := time.Now(), methodName(method)
			target := targetOf(req)
			ctx, span := t.Start(t.Parent(ctx, parentOf(req)), telemetry.Serving, name, target)
			span.Set("mcp.method.name", name)
			if target != "" {
				span.Set("gen_ai.tool.name", target)
				span.Set("gen_ai.operation.name", "execute_tool")
			}
			result, err := next(ctx, method, req)
			went := wentHow(result, err)
			span.End(went)
			t.Served(ctx, name, went, time.Since(begun))
			return result, err
		}
	}
}

// methodName is a method by its name if it is one of the protocol: a client may ask for anything.
func methodName(method string) string {
	switch method {
	case "initialize", "ping", "tools/list", "tools/call", "server/discover", "logging/setLevel", "completion/complete", "subscriptions/listen",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get":
		return method
	}
	return "_OTHER"
}

// targetOf is the tool that a request calls, "" for other requests.
func targetOf(req mcp.Request) string {
	if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
		return call.Params.Name
	}
	return ""
}

// parentOf is which trace a client says that its request is part of. What stands in the request goes before the header,
// which may be of who passed it on.
func parentOf(req mcp.Request) string {
	if params := req.GetParams(); params != nil {
		if parent, ok := metaOf(params)[traceparent].(string); ok {
			return parent
		}
	}
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		return extra.Header.Get(traceparent)
	}
	return ""
}

// wentHow says in a word how a request was answered.
func wentHow(result mcp.Result, err error) string {
	if wrong, ok := errors.AsType[*jsonrpc.Error](err); ok && wrong.Code == jsonrpc.CodeMethodNotFound {
		return "method_not_found"
	}
	if err != nil {
		return "error"
	}
	if called, ok := result.(*mcp.CallToolResult); ok && called != nil && called.IsError {
		return "tool_error"
	}
	return ""
}
