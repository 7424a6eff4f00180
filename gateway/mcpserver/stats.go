package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stats is the part of the gateway that the tool of profile stats calls.
type Stats interface {
	Stats(ctx context.Context) (string, error)
}

func statsTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "get_execution_stats",
		Description: "Count your programs: outcomes, durations, tool calls, tokens, workspace.",
		Annotations: readOnly(),
		InputSchema: json.RawMessage(`{"type":"object"}`),
	}
}

// stats implements the tool of profile stats.
type stats struct{ service Stats }

func (s stats) extras() []extra { return []extra{{statsTool(), s.stats}} }

func (s stats) stats(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	if err := decodeArguments(args, nil); err != nil {
		return nil, err
	}
	return toResult(s.service.Stats(ctx))
}
