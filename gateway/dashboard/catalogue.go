package dashboard

import (
	"bytes"
	"encoding/json"

	"sallyport/gateway/catalog"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// CataloguePage is what a search shows: the text that the model reads, and the same for people.
type CataloguePage struct {
	Query, Upstream, Detail, Language string
	Limit                             int
	// Upstreams, Details and Languages are what can be chosen.
	Upstreams, Details, Languages []string
	Found                         toolsearch.Found
	// Text is the answer of search_tools, Tokens its number of tokens.
	Text   string
	Tokens int
	// Problem says what is wrong with the query, Hint how to fix it.
	Problem, Hint string
}

func (d *Dashboard) catalogue(r *request) (any, error) {
	query := r.URL.Query()
	p := CataloguePage{
		Query: query.Get("q"), Upstream: query.Get("upstream"), Detail: query.Get("detail"), Language: query.Get("language"), Limit: r.number("limit"),
		Details: []string{string(toolsearch.Signature), string(toolsearch.Names), string(toolsearch.Summary), string(toolsearch.Full)}, Languages: []string{"python", "typescript"},
	}
	for _, up := range d.service.Upstreams() {
		p.Upstreams = append(p.Upstreams, up.ID)
	}
	// Searches here must not train the feedback ranking.
	ctx := tool.WithSession(r.Context(), "dashboard")
	found, err := d.service.Search(ctx, toolsearch.Request{Query: p.Query, Upstream: p.Upstream, Detail: toolsearch.Detail(p.Detail), Language: p.Language, Limit: p.Limit})
	if e := tool.AsError(err); err != nil && e.Kind == tool.Invalid || err != nil && e.Kind == tool.NotFound {
		p.Problem, p.Hint = e.Message, e.Hint
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.Found, p.Text = found, found.Text()
	p.Tokens = d.service.CountTokens(p.Text)
	return p, nil
}

// ToolPage is what the page of one tool shows.
type ToolPage struct {
	toolsearch.ToolView
	Python, TypeScript []toolsearch.ToolText
	// Input and Output are the schemas, laid out to be read.
	Input, Output string
	Hints         []Hint
	// Pinned says that its definition is the one that was pinned.
	Pinned bool
	// Use is how it was used, nil for a user who is no operator.
	Use *ToolUse
	// Try calls it; nil for a user who may not.
	Try *TryPage
}

// Hint is what the upstream says of a tool.
type Hint struct {
	Word string
	Yes  bool
}

// tool shows one tool, with a form that calls it.
func (d *Dashboard) tool(r *request) (any, error) {
	p, err := d.toolPage(r)
	if err == nil && tool.May(r.Context(), tool.ScopeCall) {
		p.Try = newTry(r, p.Tool.Input)
	}
	return p, err
}

// toolPage returns the page of a tool without its form.
func (d *Dashboard) toolPage(r *request) (ToolPage, error) {
	id := tool.ID{Upstream: r.PathValue("upstream"), Name: r.PathValue("tool")}
	v, err := d.service.ToolView(r.Context(), id)
	if err != nil {
		if held, _ := d.service.HeldTools(r.Context()); isHeld(held, id) {
			return ToolPage{}, &tool.Error{Kind: tool.Denied, Message: sanitize.Line(id.String(), 200) + " is quarantined: nothing is shown of it here", Hint: "its definition is under Quarantine"}
		}
		return ToolPage{}, err
	}
	r.setTitle(id.String(), Crumb{"Upstreams", "/ui/upstreams"}, Crumb{id.Upstream, "/ui/upstreams/" + id.Upstream})
	p := ToolPage{ToolView: v, Input: indentJSON(v.Tool.Input), Output: indentJSON(v.Tool.Output), Hints: hints(v.Tool.Annotations)}
	for _, text := range v.Texts {
		if text.Language == "python" {
			p.Python = append(p.Python, text)
		} else {
			p.TypeScript = append(p.TypeScript, text)
		}
	}
	p.Use, err = graphPages{d}.toolUse(r, id)
	return p, err
}

func isHeld(held []catalog.HeldTool, id tool.ID) bool {
	for _, h := range held {
		if h.ID == id {
			return true
		}
	}
	return false
}

func hints(a tool.Annotations) (list []Hint) {
	for _, h := range []struct {
		word string
		is   *bool
	}{{"read-only", a.ReadOnly}, {"destructive", a.Destructive}, {"idempotent", a.Idempotent}, {"open world", a.OpenWorld}} {
		if h.is != nil {
			list = append(list, Hint{h.word, *h.is})
		}
	}
	return list
}

// maxSchema is the maximum length of a shown schema, in characters.
const maxSchema = 32 << 10

func indentJSON(data json.RawMessage) string {
	if len(data) == 0 {
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return sanitize.Text(string(data), maxSchema)
	}
	return sanitize.Text(b.String(), maxSchema)
}
