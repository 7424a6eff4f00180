package mcpserver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// traceparent is the HTTP header and the member of _meta with the trace context of a request.
const traceparent = "traceparent"

// traceRequests is a middleware that records a span and metrics of each request, in the client's trace if the request has one.
// It ignores notifications.
func traceRequests(t *telemetry.Telemetry) mcp.Middleware {
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
			ctx, span := t.Start(t.Parent(ctx, traceParentOf(req)), telemetry.Server, name, target)
			span.Set("mcp.method.name", name)
			if target != "" {
				span.Set("gen_ai.tool.name", target)
				span.Set("gen_ai.operation.name", "execute_tool")
			}
			result, err := next(ctx, method, req)
			went := outcomeOf(result, err)
			span.End(went)
			t.RecordRequest(ctx, name, went, time.Since(begun))
			return result, err
		}
	}
}

// methodName returns a method of the protocol, "_OTHER" for any other name, which bounds the values of the metric.
func methodName(method string) string {
	switch method {
	case "initialize", "ping", "tools/list", "tools/call", "server/discover", "logging/setLevel", "completion/complete", "subscriptions/listen",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get",
		tool.GetTask, tool.UpdateTask, tool.CancelTask:
		return method
	}
	return "_OTHER"
}

// targetOf returns the tool that a request calls, "" for other requests.
func targetOf(req mcp.Request) string {
	if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
		return call.Params.Name
	}
	return ""
}

// traceParentOf returns the trace context that a client sent with a request. That in the request takes precedence over the
// header, which may come from a proxy.
func traceParentOf(req mcp.Request) string {
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

// outcomeOf returns the error type of a request for telemetry, "" for success.
func outcomeOf(result mcp.Result, err error) string {
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
