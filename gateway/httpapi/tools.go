package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"sallyport/gateway/approvals"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Catalog lists, searches and calls tools.
type Catalog interface {
	// Await waits for one upstream, or with "" until most have been tried.
	Await(ctx context.Context, upstream string)
	// Tools returns all tools that may be called, sorted by id.
	Tools() []tool.Tool
	Search(ctx context.Context, s toolsearch.Request) (toolsearch.Found, error)
	ToolView(ctx context.Context, id tool.ID) (toolsearch.ToolView, error)
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	// Approval returns the current state of an approval of the caller.
	Approval(ctx context.Context, id string) (approvals.Approval, error)
}

// defaultTools is the default limit of a list, maxTools the maximum.
const defaultTools, maxTools = 100, 1000

// ToolList is what GET /tools gives.
type ToolList struct {
	// Tools are sorted by id.
	Tools []ToolSummary `json:"tools"`
	// Total is the number of all tools, of the requested upstream.
	Total int `json:"total"`
	// Next is the cursor of the next page, omitted on the last one.
	Next string `json:"next,omitempty"`
}

// ToolSummary is a tool in a list. Its texts are the upstream's, without invisible characters.
type ToolSummary struct {
	// ID is upstream.tool, as programs import it.
	ID tool.ID `json:"id"`
	// Name is what the upstream calls it.
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	// Description is the first line of it, at most 200 characters.
	Description string `json:"description,omitempty"`
	// Annotations are what the upstream says of its effects.
	Annotations tool.Annotations `json:"annotations"`
}

func (a *api) tools(r *http.Request) (ToolList, error) {
	query := queryOf(r)
	a.service.Await(r.Context(), query.text("upstream"))
	list, from := ToolList{Tools: []ToolSummary{}}, query.text("cursor")
	for _, t := range a.service.Tools() {
		if up := query.text("upstream"); up != "" && t.ID.Upstream != up {
			continue
		}
		list.Total++
		if id := t.ID.String(); id <= from {
			continue
		}
		if len(list.Tools) == query.number("limit") {
			list.Next = list.Tools[len(list.Tools)-1].ID.String()
			from = "\xff" // only counted from here
			continue
		}
		list.Tools = append(list.Tools, summaryOf(t))
	}
	return list, nil
}

func summaryOf(t tool.Tool) ToolSummary {
	first, _, _ := strings.Cut(strings.TrimSpace(sanitize.Text(t.Description, 4000)), "\n")
	return ToolSummary{ID: t.ID, Name: sanitize.Line(t.Wire, 200), Title: sanitize.Line(t.Title, 200), Description: sanitize.Line(first, 200), Annotations: t.Annotations}
}

// ToolSearch is what GET /tools/search gives: what search_tools finds, in the same order.
type ToolSearch struct {
	// Found are the matches, the best first, with notes.
	Found toolsearch.Found `json:"found"`
	// Tokens is the number of tokens of the same result as text (o200k_base).
	Tokens int `json:"tokens"`
}

// details are the levels of detail of a search.
var details = []toolsearch.Detail{toolsearch.Names, toolsearch.Summary, toolsearch.Signature, toolsearch.Full}

// searchHits is how many hits a search returns without a limit. With a number, as many hits as there is room for have a signature;
// without one, most are only named, as is best for a model.
const searchHits = 20

func (a *api) searchTools(r *http.Request) (ToolSearch, error) {
	query := queryOf(r)
	limit := query.number("limit")
	if limit == 0 && query.text("q") != "" {
		limit = searchHits
	}
	found, err := a.service.Search(r.Context(), toolsearch.Request{
		Query: query.text("q"), Detail: toolsearch.Detail(query.text("detail")), Upstream: query.text("upstream"),
		Limit: limit, Budget: query.number("budget"), Language: query.text("language"),
	})
	if err != nil {
		return ToolSearch{}, err
	}
	if found.Tools == nil {
		found.Tools = []toolsearch.FoundTool{}
	}
	return ToolSearch{Found: found, Tokens: a.service.CountTokens(found.Text())}, nil
}

// ToolInfo is what GET /tools/info/{upstream}/{tool} gives: all details of a tool. Its texts are the upstream's.
type ToolInfo struct {
	// ID is upstream.tool, as programs import it, Name what the upstream calls it.
	ID    tool.ID `json:"id"`
	Name  string  `json:"name"`
	Title string  `json:"title,omitempty"`
	// Description is the complete description.
	Description string `json:"description,omitempty"`
	// InputSchema is the JSON Schema of the arguments, OutputSchema that of the structured result, if any.
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Annotations are what the upstream says of its effects.
	Annotations tool.Annotations `json:"annotations"`
	// Digest identifies the definition.
	Digest string `json:"digest"`
	// Policy is ask if every call needs approval, deny if all are refused.
	Policy string `json:"policy,omitempty"`
	// Texts are the texts of search_tools about it, in each language, at each level of detail.
	Texts []ToolText `json:"texts"`
}

// ToolText is what a model reads of a tool.
type ToolText struct {
	Language string            `json:"language"`
	Detail   toolsearch.Detail `json:"detail"`
	Text     string            `json:"text"`
	// Tokens is its number of tokens (o200k_base).
	Tokens int `json:"tokens"`
}

func (a *api) toolInfo(r *http.Request) (ToolInfo, error) {
	a.service.Await(r.Context(), r.PathValue("upstream"))
	view, err := a.service.ToolView(r.Context(), tool.ID{Upstream: r.PathValue("upstream"), Name: r.PathValue("tool")})
	if err != nil {
		return ToolInfo{}, err
	}
	t := view.Tool
	info := ToolInfo{
		ID: t.ID, Name: sanitize.Line(t.Wire, 200), Title: sanitize.Line(t.Title, 200), Description: sanitize.Text(t.Description, 64<<10),
		InputSchema: t.Input, OutputSchema: t.Output, Annotations: t.Annotations, Digest: view.Digest, Policy: view.Policy,
	}
	for _, one := range view.Texts {
		info.Texts = append(info.Texts, ToolText(one))
	}
	return info, nil
}

// ToolCall is what POST /tools/call/{upstream}/{tool} takes.
type ToolCall struct {
	// Arguments is an object by the tool's input schema; the default is an empty one.
	Arguments json.RawMessage `json:"arguments,omitempty" type:"object"`
}

// ToolResult is what POST /tools/call/{upstream}/{tool} gives.
type ToolResult struct {
	// Status is done, or held if the call needs approval first.
	Status string `json:"status"`
	// Content is what the tool answered.
	Content []Content `json:"content"`
	// Structured is the structured content, if the tool returns it.
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	// IsError says that the tool itself reports a failure.
	IsError bool `json:"isError"`
	// Approval is the approval that it waits for, with status held: once it is answered, the same request makes the call.
	Approval *approvals.Approval `json:"approval,omitempty"`
}

// pending selects the status 202: the call is not made yet.
func (t ToolResult) pending() bool { return t.Status == callHeld }

// The statuses of a tool call.
const (
	callDone = "done"
	callHeld = "held"
)

func (a *api) callTool(r *http.Request, in ToolCall) (ToolResult, error) {
	id := tool.ID{Upstream: r.PathValue("upstream"), Name: r.PathValue("tool")}
	if id.Method() != "tools/call" { // other methods have ids of that form
		return ToolResult{}, &tool.Error{Kind: tool.NotFound, Message: "there is no tool " + sanitize.Line(id.String(), 150), Hint: "GET /tools lists them"}
	}
	if len(in.Arguments) == 0 || string(in.Arguments) == "null" {
		in.Arguments = json.RawMessage("{}")
	}
	result, err := a.service.Call(r.Context(), tool.Call{Tool: id, Args: in.Arguments})
	if waits, ok := errors.AsType[*approvals.PendingError](err); ok {
		return a.heldCall(r.Context(), waits.Approval)
	}
	if err != nil {
		return ToolResult{}, err
	}
	return NewToolResult(result), nil
}

// NewToolResult returns the response for the result of a call.
func NewToolResult(r tool.Result) ToolResult {
	return ToolResult{Status: callDone, Content: contents(r.Content), Structured: r.Structured, IsError: r.IsError}
}

// heldCall returns the response for a call that waits for approval.
func (a *api) heldCall(ctx context.Context, id string) (ToolResult, error) {
	asked, err := a.service.Approval(ctx, id)
	if err != nil {
		return ToolResult{}, err
	}
	return ToolResult{Status: callHeld, Content: []Content{}, Approval: &asked}, nil
}
