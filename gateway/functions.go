package gateway

import (
	"context"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/codegen/runtime"
	"sallyport/index"
	"sallyport/internal/tool"
)

// What programs can import from "sallyport" is found by search as tools are. It
// has an index of its own, so that ranking of tools does not depend on it.

const (
	// functionFits is how much of a query a function of ours must have to be shown
	// beside tools: it stands there for a model that looks for it.
	functionFits = 0.6
	// toolsPerFunction: there is room for one among that many hits.
	toolsPerFunction = 4
	// surelyMore is by how much a function must cover more of a query than the best
	// tool to stand before it.
	surelyMore = 0.05
)

func functionNamed(name string) *runtime.Function {
	functions := runtime.Functions()
	if i := slices.IndexFunc(functions, func(f runtime.Function) bool { return f.Name == name }); i >= 0 {
		return &functions[i]
	}
	return nil
}

func functionNames() []string {
	var names []string
	for _, f := range runtime.Functions() {
		names = append(names, f.Name)
	}
	return names
}

// functionIndex is an index of the functions alone.
func functionIndex() (*index.Index, error) {
	var docs []index.Doc
	for _, f := range runtime.Functions() {
		docs = append(docs, index.Doc{ID: tool.ID{Upstream: ownID, Name: f.Name}, Wire: f.Name, Title: f.Words, Description: f.Summary})
	}
	return index.New(docs, nil)
}

func describeFunction(f runtime.Function, detail Detail, lang codegen.Language) FoundTool {
	form := f.Python
	if lang == codegen.TypeScript {
		form = f.TypeScript
	}
	found := FoundTool{ID: tool.ID{Upstream: ownID, Name: f.Name}}
	if detail == Names {
		return found
	}
	found.Summary = strings.TrimSuffix(f.Summary, ".")
	switch detail {
	case Signature:
		found.Import, found.Text = form.Import, form.Signature
	case Full:
		found.Import, found.Text = form.Import, form.Import+"\n"+form.Signature+"\n\n"+f.Summary+"\n"+form.Doc
	}
	return found
}

// listFunctions is the answer to a search of nothing in particular in ours: all of them.
func listFunctions(found *Found, lang codegen.Language) {
	for _, f := range runtime.Functions() {
		found.Tools = append(found.Tools, describeFunction(f, found.Detail, lang))
	}
	found.Total = len(found.Tools)
}

// searchFunctions is the answer to a search in ours only.
func (g *Gateway) searchFunctions(ctx context.Context, s Search, lang codegen.Language, found *Found) error {
	results, err := g.functions.Search(ctx, index.Query{Text: s.Query, Limit: s.Limit})
	if err != nil {
		return searchError(err)
	}
	found.Total, found.Weak, found.Unmatched, found.Suggest = results.Total, results.Weak, results.Unmatched, results.Suggest
	for _, hit := range results.Hits {
		found.Tools = append(found.Tools, describeFunction(*functionNamed(hit.ID.Name), s.Detail, lang))
	}
	return nil
}

// addFunctions puts those of ours that fit the query among the tools that were
// found: before them where it was our function that was looked for, else behind
// them. best is how much the best tool has of the query.
func (g *Gateway) addFunctions(ctx context.Context, s Search, lang codegen.Language, found *Found, best float64) error {
	room := max(1, min(s.Limit/toolsPerFunction, 2))
	results, err := g.functions.Search(ctx, index.Query{Text: s.Query, Limit: room})
	if err != nil {
		return searchError(err)
	}
	var first, last []FoundTool
	for _, hit := range results.Hits {
		f := *functionNamed(hit.ID.Name)
		exact := s.Query == hit.ID.Name || s.Query == hit.ID.String()
		worded := results.Words > 1 || slices.Contains(strings.Fields(f.Words), strings.ToLower(s.Query)) // one word fits too much
		sought := exact || found.Weak || len(found.Tools) == 0 || hit.Cover > best+surelyMore
		switch {
		case !exact && (hit.Cover < functionFits || !worded):
		case sought:
			first = append(first, describeFunction(f, s.Detail, lang))
		case results.Words > 1 && s.Limit >= toolsPerFunction:
			last = append(last, describeFunction(f, s.Detail, lang))
		}
	}
	found.insert(first, last, s.Limit)
	return nil
}

func (f *Found) insert(first, last []FoundTool, limit int) {
	if len(first)+len(last) == 0 {
		return
	}
	f.Total += len(first) + len(last)
	f.Weak = f.Weak && len(first) == 0
	tools := f.Tools[:min(len(f.Tools), limit-len(first)-len(last))]
	f.Tools = slices.Concat(first, tools, last)
}
