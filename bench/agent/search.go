package agent

import (
	"context"
	"encoding/json"
	"strings"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/index"
	"sallyport/internal/tool"
)

// finds is how many tools a search returns: the maximum of Anthropic's tool search, which returns three to five.
const finds = 5

// searchMode is direct with all tools deferred: the model sees one tool that finds the others. It is modelled on
// Anthropic's tool search with BM25 and OpenAI's, whose descriptions are shorter than this one's and which put the
// definitions of their results into the context; their ranking is replaced by our own index.
type searchMode struct {
	*direct
	finds int
	index *index.Index
	found map[tool.ID]tokencount.Definition
}

func openSearch(d *direct, finds int) (*searchMode, error) {
	s := &searchMode{direct: d, finds: finds, found: map[tool.ID]tokencount.Definition{}}
	var docs []index.Doc
	for _, from := range d.sources {
		var wires []string
		for _, t := range from.tools {
			wires = append(wires, t.Name)
		}
		for i, name := range tool.Identifiers(wires) {
			t := from.tools[i]
			id := tool.ID{Upstream: tool.Identifier(from.name), Name: name}
			s.found[id] = t.definition(suite.ToolName(from.name + "." + t.Name))
			docs = append(docs, index.FromTool(tool.Tool{ID: id, Wire: t.Name, Title: t.Title, Description: t.Description, Input: t.InputSchema, Output: t.OutputSchema}, from.about))
		}
	}
	var err error
	if s.index, err = index.New(docs, nil); err != nil {
		_ = d.Close()
		return nil, err
	}
	return s, nil
}

// SearchDefinition is the one tool that the mode [suite.Search] shows.
func SearchDefinition() tokencount.Definition {
	return tokencount.Definition{
		Name:        suite.SearchTool,
		Description: "Find tools by what they do. Tools that match can be called from then on.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"keywords or a sentence"}},"required":["query"]}`),
	}
}

// Definitions implements [Tools].
func (s *searchMode) Definitions() []tokencount.Definition {
	return []tokencount.Definition{SearchDefinition()}
}

// Call implements [Tools]. [Run] lets no tool be called that was not found before, and shows none twice.
func (s *searchMode) Call(ctx context.Context, call tokencount.Call) (tokencount.Result, error) {
	if call.Tool != suite.SearchTool {
		return s.direct.Call(ctx, call)
	}
	query := queryOf(call.Args)
	if query == "" {
		return tokencount.Result{Text: "query is missing", Error: true}, nil
	}
	found, err := s.index.Search(ctx, index.Query{Text: query, Limit: s.finds})
	if err != nil || len(found.Hits) == 0 {
		return tokencount.Result{Text: "No tool matches."}, err
	}
	var defs []tokencount.Definition
	for _, hit := range found.Hits {
		defs = append(defs, s.found[hit.ID])
	}
	return SearchResult(defs), nil
}

// SearchResult is the result of the search tool: a line of names, and the definitions.
func SearchResult(defs []tokencount.Definition) tokencount.Result {
	var names []string
	for _, def := range defs {
		names = append(names, def.Name)
	}
	return tokencount.Result{Text: "Found " + strings.Join(names, ", "), Shows: defs}
}

func queryOf(args json.RawMessage) string {
	var said struct{ Query string }
	_ = json.Unmarshal(args, &said) // what cannot be read asks for nothing
	return said.Query
}

// Close implements [Open].
func (s *searchMode) Close() error {
	_ = s.index.Close()
	return s.direct.Close()
}
