package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/compat"
	"sallyport/gateway/execution"
	"sallyport/internal/tool"
)

// addFace adds the tools of another server, which clients see in place of search_tools and execute_code.
func addFace(tools *Tools, verbs Service, face *compat.Face) {
	for _, t := range face.Tools {
		def := &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema}
		extra{def, func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			r, _ := ctx.Value(requestKey{}).(*request)
			return r.runFor(ctx, func(ctx context.Context, peer tool.Peer) (*mcp.CallToolResult, error) {
				return callFace(ctx, verbs, t, peer, args, r.CallToolRequest)
			})
		}}.add(tools)
	}
}

// callFace calls a tool of another server. Failures are in its answer, so it is no error of MCP.
func callFace(ctx context.Context, verbs Service, t compat.Tool, peer tool.Peer, args json.RawMessage, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	said, err := t.Call(ctx, func(ctx context.Context, p execution.Program) (execution.Result, error) {
		p.Peer = peer
		return verbs.Execute(ctx, p)
	}, args)
	if err != nil {
		return nil, err
	}
	result := textResult(said.Text, false)
	result.Content = append(result.Content, contentBlocks(said.Content, revisionOf(req), showsApps(req))...)
	return result, nil
}
