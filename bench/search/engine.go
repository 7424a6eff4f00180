package main

import (
	"context"
	"fmt"
	"strings"

	"sallyport/bench/search/baseline"
	"sallyport/index"
	"sallyport/internal/testutil/ireval"
	"sallyport/internal/tool"
)

// answer is what an engine says to one query.
type answer struct {
	ids  []string // judged, best first
	weak bool     // it says that nothing fits well
	// confidence is the estimate that one of the first five is right.
	confidence float64
}

// engine is one way to search a set.
type engine struct {
	name   string
	search func(ctx context.Context, text string) (answer, error)
	close  func() error
}

// depth is how many hits are judged.
const depth = 10

const (
	ours     = "sallyport"
	plain    = "bleve"
	informed = "bleve+about" // with the words about the server
	proxy    = "mcpproxy"
)

func engineNames() []string { return []string{ours, plain, informed, proxy} }

// openEngine opens one of the engines by its name.
func openEngine(name string, s *ireval.Set) (engine, error) {
	switch name {
	case ours:
		return sallyport(name, s, alone)
	case fused:
		return openFused(s)
	case plain:
		return other(name, s, baseline.Default)
	case informed:
		return other(name, s, baseline.About)
	case proxy:
		return other(name, s, baseline.Proxy)
	}
	return engine{}, fmt.Errorf("unknown engine %q (use %s)", name, strings.Join(append(engineNames(), fused), ", "))
}

func other(name string, s *ireval.Set, open func(*ireval.Set) (*baseline.Index, error)) (engine, error) {
	ix, err := open(s)
	if err != nil {
		return engine{}, err
	}
	return engine{name: name, close: ix.Close, search: func(ctx context.Context, text string) (answer, error) {
		ids, err := ix.Search(ctx, text, depth)
		return answer{ids: ids, weak: len(ids) == 0}, err
	}}, nil
}

// sallyport is our search, fused with another ranking of each query.
func sallyport(name string, s *ireval.Set, also func(ctx context.Context, text string) []tool.ID) (engine, error) {
	docs := make([]index.Doc, len(s.Entries))
	for i, e := range s.Entries {
		docs[i] = index.FromTool(e.Tool, e.About)
	}
	ix, err := index.New(docs, nil)
	if err != nil {
		return engine{}, err
	}
	return engine{name: name, close: ix.Close, search: func(ctx context.Context, text string) (answer, error) {
		res, err := ix.Search(ctx, index.Query{Text: text, Limit: depth, Also: also(ctx, text)})
		a := answer{weak: res.Weak || len(res.Hits) == 0, confidence: res.Confidence}
		for _, hit := range res.Hits {
			a.ids = append(a.ids, s.JudgedID(hit.ID))
		}
		return a, err
	}}, nil
}
