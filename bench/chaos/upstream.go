//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type incInput struct {
	Key string `json:"key"`
}

// upstreamDelay is how long the upstream takes before and after what it does.
const upstreamDelay = 150 * time.Millisecond

// serveUpstream is a server with one tool that must not be called twice: it appends its key to a file.
func serveUpstream(ctx context.Context, file string) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "crm", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "inc", Description: "Add one to a counter."}, func(_ context.Context, _ *mcp.CallToolRequest, in incInput) (*mcp.CallToolResult, any, error) {
		if err := record(file, "begin "+in.Key); err != nil {
			return nil, nil, err
		}
		time.Sleep(upstreamDelay)
		if err := record(file, "done "+in.Key); err != nil {
			return nil, nil, err
		}
		time.Sleep(upstreamDelay)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "counted " + in.Key}}}, nil, nil
	})
	return server.Run(ctx, &mcp.StdioTransport{})
}

// record appends a line, which survives a kill.
func record(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
