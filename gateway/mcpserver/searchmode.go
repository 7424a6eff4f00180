package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
)

// In mode search clients see two tools: search_tools returns definitions of the upstreams' tools, and call_tool calls one.
// Calls, resources and prompts are those of direct mode.

// Search is what mode search calls of the gateway.
type Search interface {
	Search(ctx context.Context, s toolsearch.Request) (toolsearch.Found, error)
	Upstreams() []catalog.Upstream
}

const (
	// shownDefinitions is how many definitions an answer has, maxDefinitions their size in bytes; the first is always shown.
	shownDefinitions, maxDefinitions = 5, 12 << 10
	// maxNames is how many tools more are named.
	maxNames = 10
	// maxToolDescription is the length of a description in them, in characters.
	maxToolDescription = 1000
)

// searchTools returns the two tools.
func searchTools(ups []catalog.Upstream) []*mcp.Tool {
	return []*mcp.Tool{
		{
			Name:        "search_tools",
			Description: "Find tools for call_tool: say what each should do, comma-separated, or its name." + DescribeUpstreams(ups),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
			InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}}}`),
		},
		{
			Name:        "call_tool",
			Description: "Call a tool that search_tools found, with arguments by its inputSchema.",
			InputSchema: json.RawMessage(`{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"arguments":{"type":"object"}}}`),
		},
	}
}

// receiveSearch handles the methods of tools for clients in mode search.
func (d *Direct) receiveSearch(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch {
		case method == "tools/list" && d.searches(req):
			d.record(ctx, d.roster.Load(), method, req)
			return d.listSearch(ctx, req), nil
		case method == "tools/call" && d.searches(req):
			result, err := d.callSearch(ctx, d.roster.Load(), method, req)
			return complete(isModernRequest(req), result), err
		}
		return next(ctx, method, req)
	}
}

// listSearch returns the list of the two tools.
func (d *Direct) listSearch(ctx context.Context, req mcp.Request) mcp.Result {
	result := object{"tools": encode(searchTools(d.upstreams(ctx)))}
	return d.listResult(req, result)
}

// searchDigest returns the digest of the list of the two tools as the caller sees it.
func (d *Direct) searchDigest(ctx context.Context) digest {
	return sha256.Sum256(encode(searchTools(d.upstreams(ctx))))
}

// upstreams returns the upstreams that the caller sees.
func (d *Direct) upstreams(ctx context.Context) []catalog.Upstream {
	if d.opts.Upstreams != nil {
		return d.opts.Upstreams(ctx)
	}
	return d.opts.Search.Upstreams()
}

// callSearch makes a call of one of the two tools, or of a tool by its own name.
func (d *Direct) callSearch(ctx context.Context, r *roster, method string, req mcp.Request) (mcp.Result, error) {
	var params object
	if json.Unmarshal(paramsOf(req), &params) != nil || params == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params must be an object"}
	}
	switch decodeString(params["name"]) {
	case "search_tools":
		return d.search(ctx, params["arguments"])
	case "call_tool":
		inner, err := innerCall(params)
		if err != nil {
			return errorResult(err), nil
		}
		params = inner
	}
	return d.forwardParams(ctx, r, method, req, params)
}

// innerCall returns the parameters of the call that call_tool makes.
func innerCall(params object) (object, error) {
	var name string
	var arguments object
	if err := decodeArguments(params["arguments"], map[string]any{"name": &name, "arguments": &arguments}, map[string]any{"tool_name": &name, "tool": &name, "args": &arguments, "parameters": &arguments}); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, invalidArgument("name is missing", "as search_tools writes it")
	}
	inner := maps.Clone(params)
	inner["name"] = encode(name)
	delete(inner, "arguments")
	if arguments != nil {
		inner["arguments"] = encode(arguments)
	}
	return inner, nil
}

// search handles search_tools.
func (d *Direct) search(ctx context.Context, args json.RawMessage) (mcp.Result, error) {
	s := toolsearch.Request{Detail: toolsearch.Names}
	var limit float64
	var ignored string
	if err := decodeArguments(args, map[string]any{"query": &s.Query}, map[string]any{"upstream": &s.Upstream, "server": &s.Upstream, "limit": &limit, "detail": &ignored, "language": &ignored}); err != nil {
		return errorResult(err), nil
	}
	ctx, cancel := detach(ctx)
	defer cancel()
	found, err := d.opts.Search.Search(ctx, s)
	if err != nil {
		return errorResult(err), nil
	}
	most := shownDefinitions
	if limit >= 1 {
		most = int(min(limit, 50))
	}
	return textResult(definitions(d.current(), found, most), false), nil
}

// definitions returns the definitions of the tools that were found, one JSON object a line. Where upstreams or tools are
// listed, and where no tool was found, it is the text of the search.
func definitions(r *roster, found toolsearch.Found, most int) string {
	var b strings.Builder
	var names []string
	shown := 0
	for _, one := range found.Tools {
		e, ok := r.byTool[one.ID]
		if !ok || one.Kind != "" {
			continue
		}
		if !found.Listing && shown < most {
			definition := definitionOf(e)
			if shown == 0 || b.Len()+len(definition) <= maxDefinitions {
				b.WriteString(definition + "\n")
				shown++
				continue
			}
		}
		if found.Listing || len(names) < maxNames {
			names = append(names, e.key)
		}
	}
	switch {
	case shown == 0 && len(names) == 0:
		return found.Text()
	case len(names) > 0:
		b.WriteString("Without definition: " + strings.Join(names, ", ") + ". A search for a name gives it.")
	}
	return strings.TrimSpace(b.String())
}

// definitionOf returns what a model needs of a tool's definition.
func definitionOf(e entry) string {
	var has struct {
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(e.raw, &has) != nil {
		return ""
	}
	definition := struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema,omitempty"`
	}{e.key, sanitize.Text(has.Description, maxToolDescription), has.Input}
	return string(encode(definition))
}
