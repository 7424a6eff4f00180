package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/tool"
)

const (
	// upstreamVar makes this program an upstream over stdio: one that lists what is in a file, or echoes.
	upstreamVar = "SALLYPORT_BENCH_UPSTREAM"
	echoing     = "echo"
)

func beUpstream(what string) {
	var err error
	if what == echoing {
		err = upstreamServer().Run(context.Background(), &mcp.StdioTransport{})
	} else {
		err = beListing(what, json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// upstreamServer is an MCP server with a tool that answers at once.
func upstreamServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", Description: "Answer at once.", InputSchema: json.RawMessage(echoSchema)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: echoed}, nil
		})
	return server
}

const (
	echoSchema  = `{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`
	largeSchema = `{"type":"object","required":["kind"],"properties":{"kind":{"enum":["text","rows","typical","dense"]}}}`
)

var echoed = json.RawMessage(`{"ok":true}`)

func kindOf(args json.RawMessage) string {
	var in struct{ Kind string }
	_ = json.Unmarshal(args, &in) // an unknown kind has no answer
	return in.Kind
}

const largeSize = 10_000_000

// large are results of 10 MB: one long text, and records of eight small values.
func large() map[string]json.RawMessage {
	row := `{"id":12345,"name":"some name","tags":["a","b"],"open":true,"score":0.5,"text":"` + strings.Repeat("lorem ipsum ", 20) + `"},`
	rows := strings.TrimSuffix(strings.Repeat(row, largeSize/len(row)), ",")
	return map[string]json.RawMessage{
		"text": json.RawMessage(`{"text":"` + strings.Repeat("lorem ipsum dolor sit amet, ", largeSize/28) + `"}`),
		"rows": json.RawMessage(`{"rows":[` + rows + `]}`),
	}
}

// directCaller is a caller without an upstream; the tools answer in this process.
type directCaller struct{ answers map[string]json.RawMessage }

// Call implements bridge.Caller.
func (p directCaller) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	if call.Tool.Name == "large" {
		return tool.Result{Structured: p.answers[kindOf(call.Args)]}, nil
	}
	return tool.Result{Structured: echoed}, nil
}
