// Package mcpserver is the face of the gateway that MCP clients see: two tools,
// search_tools and execute_code, each a thin call of one of the gateway's verbs.
// What a client reads before its first call (definitions and instructions)
// depends on the settings alone, so that it stays the same while upstreams come
// and go, and prompt caches hold.
package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// Verbs are what this face needs of the gateway.
type Verbs interface {
	Search(ctx context.Context, s gateway.Search) (gateway.Found, error)
	Execute(ctx context.Context, p gateway.Program) (gateway.Execution, error)
	Upstreams() []gateway.Upstream
}

// Options configure a server; nil means all defaults.
type Options struct {
	// Version is ours; "" is "dev".
	Version string
	// Logger gets what goes wrong in the protocol; nil discards.
	Logger *slog.Logger
}

// ServeStdio speaks MCP on stdin and stdout until the client closes stdin or ctx ends.
func ServeStdio(ctx context.Context, verbs Verbs, opts *Options) error {
	if err := New(verbs, opts).Run(ctx, &mcp.StdioTransport{}); ctx.Err() == nil {
		return err
	}
	return nil // told to end, it ended
}

// New returns the MCP server with its two tools.
func New(verbs Verbs, opts *Options) *mcp.Server {
	if opts == nil {
		opts = &Options{}
	}
	version := opts.Version
	if version == "" {
		version = "dev"
	}
	server := mcp.NewServer(
		&mcp.Implementation{Name: "sallyport", Title: "Sallyport", Version: version},
		&mcp.ServerOptions{Instructions: Instructions(verbs.Upstreams()), Logger: opts.Logger},
	)
	f := &face{verbs: verbs}
	server.AddTool(searchTool(), f.search)
	server.AddTool(executeTool(), f.execute)
	return server
}

// face answers the two tools.
type face struct{ verbs Verbs }

func (f *face) search(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Query    string `json:"query"`
		Detail   string `json:"detail"`
		Upstream string `json:"upstream"`
		Limit    int    `json:"limit"`
		Language string `json:"language"`
	}
	if err := read(req, &args); err != nil {
		return failure(err), nil
	}
	found, err := f.verbs.Search(ctx, gateway.Search{
		Query: args.Query, Detail: gateway.Detail(args.Detail), Upstream: args.Upstream, Limit: args.Limit, Language: args.Language,
	})
	if err != nil {
		return failure(err), nil
	}
	return text(found.Text(), false), nil
}

func (f *face) execute(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Code     string  `json:"code"`
		Language string  `json:"language"`
		Timeout  float64 `json:"timeout"`
	}
	if err := read(req, &args); err != nil {
		return failure(err), nil
	}
	execution, err := f.verbs.Execute(ctx, gateway.Program{
		Code: args.Code, Language: args.Language, Timeout: time.Duration(args.Timeout * float64(time.Second)),
	})
	if err != nil {
		return failure(err), nil
	}
	return text(execution.Text(), execution.Failed()), nil
}

// read decodes arguments strictly: what a model wrote and nobody reads is a mistake to tell it about.
func read(req *mcp.CallToolRequest, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(req.Params.Arguments)))
	dec.DisallowUnknownFields()
	if len(req.Params.Arguments) == 0 {
		return nil
	}
	if err := dec.Decode(into); err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: "wrong arguments: " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	return nil
}

// failure is an error as a result that the model can read and act on.
func failure(err error) *mcp.CallToolResult {
	return text(tool.AsError(err).Error(), true)
}

func text(s string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}, IsError: isError}
}

func searchTool() *mcp.Tool {
	return &mcp.Tool{
		Name: "search_tools",
		Description: "Find functions that execute_code can import. Words, a name, or \"\" for the list of upstreams. " +
			"Returns typed signatures to write code from.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)},
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string"},` +
			`"detail":{"enum":["names","summary","signature","full"],"description":"default signature"},` +
			`"upstream":{"type":"string","description":"only this one"},` +
			`"limit":{"type":"integer"},` +
			`"language":{"enum":["python","typescript"],"description":"of the signatures"}}}`),
	}
}

func executeTool() *mcp.Tool {
	return &mcp.Tool{
		Name: "execute_code",
		Description: "Run a program in a sandbox (no network, no packages). Its output and the value of its last expression come back, nothing else: " +
			"filter, join and loop in code, and return only the answer.\n" +
			"Python: from servers.UPSTREAM import TOOL; r = TOOL(name=value)\n" +
			"TypeScript: import { TOOL } from \"servers/UPSTREAM\"; const r = await TOOL({ name: value })\n" +
			"Results are native values; a failed call raises ToolError. parallel(lambda: ..., ...) from sallyport runs calls at once. " +
			"/workspace is writable, for this run only; wrappers can be read in /servers.",
		InputSchema: json.RawMessage(`{"type":"object","required":["code"],"properties":{` +
			`"code":{"type":"string"},` +
			`"language":{"enum":["python","typescript"],"description":"default python"},` +
			`"timeout":{"type":"number","description":"seconds"}}}`),
	}
}

// maxAbout bounds what is said about each upstream, maxListed how many are named, in the instructions.
const (
	maxAbout  = 60
	maxListed = 60
)

// Instructions tell a model what is behind the door: the upstreams of the settings, in their order.
func Instructions(ups []gateway.Upstream) string {
	var b strings.Builder
	b.WriteString("One door to many tools: find functions with search_tools, then call them from a program in execute_code. Upstreams: ")
	for i, up := range ups[:min(len(ups), maxListed)] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(up.ID)
		if about := plain.Line(up.Description, maxAbout); about != "" && len(ups) <= 20 {
			b.WriteString(" (" + about + ")")
		}
	}
	if more := len(ups) - maxListed; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	b.WriteString(".")
	return b.String()
}
