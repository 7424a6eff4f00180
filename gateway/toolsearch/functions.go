package toolsearch

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/codegen/runtime"
	"sallyport/gateway/toolcall"
	"sallyport/index"
	"sallyport/internal/tool"
)

// Search also finds the functions that programs can import from "sallyport". They
// have an index of their own, so that they do not affect the ranking of tools.

const (
	// minFunctionCover is how much of a query a built-in function must match to be shown
	// next to tools.
	minFunctionCover = 0.6
	// toolsPerFunction is the number of hits per function that is shown, at most maxFunctions.
	toolsPerFunction, maxFunctions = 4, 2
	// coverMargin is how much more of a query than the best tool a function must match
	// to be shown: before tools that may not fit, else after them.
	coverMargin = 0.05
	// nearFullCover is how much of a query of several words a function must match to be
	// listed after tools that match all of it.
	nearFullCover = 0.85
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

// functionIndex returns an index of the built-in functions.
func functionIndex() (*index.Index, error) {
	var docs []index.Doc
	for _, f := range runtime.Functions() {
		docs = append(docs, index.Doc{ID: tool.ID{Upstream: toolcall.GatewayID, Name: f.Name}, Kind: index.Function, Wire: f.Name, Title: f.Words, Description: f.Summary})
	}
	return index.New(docs, nil)
}

func describeFunction(f runtime.Function, detail Detail, lang codegen.Language) FoundTool {
	form := f.Python
	if lang == codegen.TypeScript {
		form = f.TypeScript
	}
	found := FoundTool{ID: tool.ID{Upstream: toolcall.GatewayID, Name: f.Name}, Kind: index.Function}
	if detail == Names {
		return found
	}
	found.Summary = strings.TrimSuffix(f.Summary, ".")
	switch detail {
	case Signature, brief:
		found.Import, found.Text = form.Import, form.Signature
	case Full:
		found.Import, found.Text = form.Import, form.Import+"\n"+form.Signature+"\n\n"+f.Summary+"\n"+form.Doc
	}
	return found
}

// listFunctions returns all built-in functions, for an empty query.
func listFunctions(found *Found, lang codegen.Language) (list []candidate) {
	for _, f := range runtime.Functions() {
		list = append(list, functionCandidate(f, lang))
	}
	found.Total = len(list)
	return list
}

func functionCandidate(f runtime.Function, lang codegen.Language) candidate {
	return candidate{id: tool.ID{Upstream: toolcall.GatewayID, Name: f.Name}, describe: func(d Detail) FoundTool { return describeFunction(f, d, lang) }}
}

// searchFunctions searches the built-in functions only.
func (sr *Searcher) searchFunctions(ctx context.Context, s Request, lang codegen.Language, found *Found) (list []candidate, err error) {
	results, err := sr.functions.Search(ctx, index.Query{Text: s.Query, Limit: s.candidates()})
	if err != nil {
		return nil, SearchError(err)
	}
	found.setTotals(results)
	found.Likely = nil
	for _, hit := range results.Hits {
		list = append(list, functionCandidate(*functionNamed(hit.ID.Name), lang))
	}
	return list, nil
}

// nonTool is a candidate that is not a tool.
type nonTool struct {
	candidate
	// relevant says that it matches enough of the query to be shown, sought that the
	// query means it rather than a tool.
	relevant, preferred bool
}

// addNonTools inserts matching candidates that are not tools: before the tools if the
// query means them, else after the first tools. best is how much of the query the
// best tool matches.
func (sr *Searcher) addNonTools(ctx context.Context, s Request, lang codegen.Language, found *Found, tools []candidate, best float64) ([]candidate, error) {
	weak := found.Weak || len(tools) == 0
	var others []nonTool
	if s.Upstream == "" {
		functions, err := sr.functionsFor(ctx, s, lang, found, best)
		if err != nil {
			return nil, err
		}
		saved, err := sr.skillsFor(ctx, s, weak, best, countExact(tools) > 0)
		if err != nil {
			return nil, err
		}
		others = append(saved, functions...)
	}
	offers, err := sr.offersFor(ctx, s, lang, found, best, countExact(tools) > 0)
	if err != nil {
		return nil, err
	}
	var first, last []candidate
	for _, o := range append(others, offers...) {
		switch {
		case !o.relevant:
		case o.preferred:
			first = append(first, o.candidate)
		case s.Limit == 0 || s.Limit >= toolsPerFunction:
			last = append(last, o.candidate)
		}
	}
	found.Total += len(first) + len(last)
	found.Weak = found.Weak && len(first) == 0
	head := min(len(tools), toolsPerFunction, max(0, cmp.Or(s.Limit, MaxLimit)-len(first)-len(last)))
	return slices.Concat(first, tools[:head], last, tools[head:]), nil
}

// classify decides whether a function that matches cover of a query of that many words is shown, and where.
// tools is the answer so far: a function does not stand before tools that fit well.
func (o *nonTool) classify(words int, cover, best float64, tools *Found, f runtime.Function, query string) {
	weak := tools.Weak || tools.Total == 0
	more := cover > best+coverMargin
	worded := words > 1 || slices.Contains(strings.Fields(f.Words), strings.ToLower(query)) // one word matches too much
	o.preferred = o.exact || more && tools.right < leastHigh || weak && (words > 1 || best < minFunctionCover)
	// A tool that matches as much suffices, unless the query is almost certainly about the function.
	needed := o.preferred || weak || more || words > 2 && cover > nearFullCover
	o.relevant = o.exact || cover >= minFunctionCover && worded && needed
}

// functionsFor returns the built-in functions that match a query.
func (sr *Searcher) functionsFor(ctx context.Context, s Request, lang codegen.Language, tools *Found, best float64) (found []nonTool, err error) {
	room := maxFunctions
	if s.Limit > 0 {
		room = max(1, min(s.Limit/toolsPerFunction, maxFunctions))
	}
	results, err := sr.functions.Search(ctx, index.Query{Text: s.Query, Limit: room})
	if err != nil {
		return nil, SearchError(err)
	}
	known := 1 - float64(len(results.Unmatched))/float64(max(results.Words, 1))
	for _, hit := range results.Hits {
		f := *functionNamed(hit.ID.Name)
		o := nonTool{candidate: functionCandidate(f, lang)}
		o.exact = s.Query == hit.ID.Name || s.Query == hit.ID.String()
		o.classify(results.Words, min(hit.Cover, known), best, tools, f, s.Query)
		found = append(found, o)
	}
	return found, nil
}
