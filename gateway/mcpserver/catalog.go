package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/toolsearch"
)

// Catalog is the part of the gateway that the tools of profile catalog call, in addition to the search.
type Catalog interface {
	Definition(ctx context.Context, name, upstream, language string) (string, error)
}

// The tools of profile catalog return what search_tools does, under names that clients may know from other servers.

func definitionTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "get_tool_definition",
		Description: "All about one tool of search_tools.",
		Annotations: readOnly(),
		InputSchema: json.RawMessage(`{"type":"object","required":["tool_name"],"properties":{` +
			`"tool_name":{"type":"string","description":"UPSTREAM.TOOL"},` +
			`"language":{"enum":["python","typescript"]}}}`),
	}
}

func categoriesTool() *mcp.Tool {
	return &mcp.Tool{
		Name:        "list_tool_categories",
		Description: "List the upstreams and how many tools each has.",
		Annotations: readOnly(),
		InputSchema: json.RawMessage(`{"type":"object"}`),
	}
}

// readOnly returns the annotations of tools that change nothing and call no external service.
func readOnly() *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}
}

// catalogTools implements the tools of profile catalog.
type catalogTools struct {
	service Service
	catalog Catalog
}

func (c catalogTools) extras() []extra {
	return []extra{{definitionTool(), c.definition}, {categoriesTool(), c.categories}}
}

func (c catalogTools) definition(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	var name, upstream, language string
	err := decodeArguments(args, map[string]any{"tool_name": &name, "language": &language},
		map[string]any{"category": &upstream, "upstream": &upstream, "server": &upstream, "name": &name, "tool": &name, "detail_level": new(string), "detail": new(string)})
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, invalidArgument("tool_name is missing", "as search_tools writes it: UPSTREAM.TOOL")
	}
	return toResult(c.catalog.Definition(ctx, name, upstream, language))
}

func (c catalogTools) categories(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	if err := decodeArguments(args, nil); err != nil {
		return nil, err
	}
	found, err := c.service.Search(ctx, toolsearch.Request{})
	return toResult(found.Text(), err)
}

// toResult returns a text as a tool result, or the error.
func toResult(answer string, err error) (*mcp.CallToolResult, error) {
	if err != nil {
		return nil, err
	}
	return textResult(answer, false), nil
}
