package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/tool"
)

// definition is a tool as clients show it that connect to its upstream directly.
func definition(t tool.Tool) tokencount.Definition {
	return tokencount.Definition{Name: suite.ToolName(t.ID.Upstream + "." + t.Wire), Description: t.Description, InputSchema: t.Input}
}

func definitions(tools []tool.Tool) []tokencount.Definition {
	list := make([]tokencount.Definition, len(tools))
	for i, t := range tools {
		list[i] = definition(t)
	}
	return list
}

// ownTranscript returns what a client of the gateway is shown.
func (b *Bench) ownTranscript(ctx context.Context) (shown tokencount.Transcript, err error) {
	server := mcpserver.New(b.gateway.Service(), b.options)
	defer server.Close()
	ours, theirs := mcp.NewInMemoryTransports()
	serving, err := server.Connect(ctx, ours, nil)
	if err != nil {
		return shown, fmt.Errorf("serve a client: %w", err)
	}
	defer func() { err = errors.Join(err, serving.Wait()) }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(ctx, theirs, nil)
	if err != nil {
		return shown, errors.Join(fmt.Errorf("connect as a client: %w", err), serving.Close())
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	shown.Instructions = []string{client.InitializeResult().Instructions}
	for t, err := range client.Tools(ctx, nil) {
		if err != nil {
			return shown, fmt.Errorf("list tools as a client: %w", err)
		}
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			return shown, fmt.Errorf("read schema of %s: %w", t.Name, err)
		}
		shown.Definitions = append(shown.Definitions, tokencount.Definition{Name: suite.ToolName("sallyport." + t.Name), Description: t.Description, InputSchema: schema})
	}
	return shown, nil
}
