package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// withClient adds to the context of each request the name that its client reports.
func withClient(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if name := clientOf(req); name != "" {
			ctx = tool.WithClient(ctx, name)
		}
		return next(ctx, method, req)
	}
}

// maxClient is how much of a client's name is kept, in runes.
const maxClient = 100

// clientOf returns a client's name and version.
func clientOf(req mcp.Request) string { return clientName(clientInfo(req)) }

// clientInfo returns a client's name and version: those in the request, as a client without sessions sends them, or those of its session.
func clientInfo(req mcp.Request) (name, version string) {
	if params := req.GetParams(); params != nil {
		if info, ok := metaOf(params)[mcp.MetaKeyClientInfo].(map[string]any); ok {
			name, _ = info["name"].(string)
			version, _ = info["version"].(string)
			return name, version
		}
		if begin, ok := params.(*mcp.InitializeParams); ok && begin != nil && begin.ClientInfo != nil {
			return begin.ClientInfo.Name, begin.ClientInfo.Version
		}
	}
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil || session.InitializeParams() == nil || session.InitializeParams().ClientInfo == nil {
		return "", ""
	}
	info := session.InitializeParams().ClientInfo
	return info.Name, info.Version
}

func clientName(name, version string) string {
	return sanitize.Line(strings.TrimSpace(name+" "+version), maxClient)
}
