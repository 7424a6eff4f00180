package local

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"sallyport/bench/agent"
	"sallyport/bench/stats"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// maxProbes is how many searches are made, queryWords how long a query gets, searchShows how many
	// tools a client adds that searches for them: of three to five that such searches show, the least.
	maxProbes   = 40
	queryWords  = 8
	searchShows = 3
)

// Search is what a search costs that looks for one tool in words of its own.
type Search struct {
	// Queries is how many were made, Found how often the answer had the tool.
	Queries int `json:"queries"`
	Found   int `json:"found"`
	// Tokens (o200k_base) are those of call and answer.
	Tokens stats.Summary `json:"tokens_o200k_base"`
}

// probes are searches that were made.
type probes struct {
	Search
	// typical is the one with the median cost here, and deferred the one with the median cost for a client with a tool search.
	typical, deferred tokencount.Turn
}

// probe is one of them, here and for a client with a tool search.
type probe struct {
	found          toolsearch.Found
	here, deferred measuredTurn
}

// measuredTurn is a turn, and what it puts into the context.
type measuredTurn struct {
	turn tokencount.Turn
	cost int
}

// searches looks for tools in words of their names and descriptions, by turns.
func (b *Bench) searches(ctx context.Context) (*probes, error) {
	var made []probe
	p := &probes{}
	var costs []float64
	for i, t := range spread(b.tools(), maxProbes) {
		one, err := b.search(ctx, query(t, i%2 == 0))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(one.found.Tools, func(f toolsearch.FoundTool) bool { return f.ID == t.ID }) {
			p.Found++
		}
		made, costs = append(made, one), append(costs, float64(one.here.cost))
	}
	p.Queries, p.Tokens = len(made), stats.Summarize(costs)
	p.typical = median(made, func(one probe) measuredTurn { return one.here })
	p.deferred = median(made, func(one probe) measuredTurn { return one.deferred })
	return p, nil
}

// median is the turn with the median cost, one that was made.
func median(made []probe, of func(probe) measuredTurn) tokencount.Turn {
	sorted := slices.SortedStableFunc(slices.Values(made), func(x, y probe) int { return of(x).cost - of(y).cost })
	return of(sorted[(len(sorted)-1)/2]).turn
}

// tools are those that can be reached.
func (b *Bench) tools() []tool.Tool {
	reachable := b.reachable()
	return slices.DeleteFunc(b.gateway.Catalog.Tools(), func(t tool.Tool) bool { return !reachable[t.ID.Upstream] })
}

// spread takes at most n of a list, evenly.
func spread[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	some := make([]T, n)
	for i := range some {
		some[i] = list[i*len(list)/n]
	}
	return some
}

// query is what someone might ask who needs a tool: its name in words, or how its description begins.
func query(t tool.Tool, byName bool) string {
	name := strings.Join(strings.FieldsFunc(t.ID.Name, func(r rune) bool { return r == '_' }), " ")
	if byName {
		return name
	}
	sentence, _, _ := strings.Cut(sanitize.Line(t.Description, 400), ". ")
	words := strings.Fields(sentence)
	if len(words) == 0 {
		return name
	}
	return strings.Join(words[:min(len(words), queryWords)], " ")
}

// search makes one as a model would, and counts what it writes and reads of it.
func (b *Bench) search(ctx context.Context, query string) (probe, error) {
	found, err := b.gateway.Searcher.Search(ctx, toolsearch.Request{Query: query})
	if err != nil {
		return probe{}, err
	}
	args, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return probe{}, err
	}
	p := probe{found: found}
	p.here.turn = tokencount.Turn{Calls: []tokencount.Call{{Tool: suite.SearchTools, Args: args}}, Results: []tokencount.Result{{Text: found.Text()}}}
	if p.deferred.turn, err = b.deferredSearch(ctx, query, args); err != nil {
		return probe{}, err
	}
	for _, one := range []*measuredTurn{&p.here, &p.deferred} {
		c, err := (&tokencount.Transcript{Turns: []tokencount.Turn{one.turn}}).Count(b.o200k)
		if err != nil {
			return probe{}, err
		}
		one.cost = contextTokens(c)
	}
	return p, nil
}

// deferredSearch is the same search where a client adds the definitions of the best tools to the context.
func (b *Bench) deferredSearch(ctx context.Context, query string, args json.RawMessage) (tokencount.Turn, error) {
	turn := tokencount.Turn{Calls: []tokencount.Call{{Tool: suite.SearchTool, Args: args}}}
	best, err := b.gateway.Searcher.Search(ctx, toolsearch.Request{Query: query, Detail: toolsearch.Names, Limit: searchShows})
	if err != nil {
		return turn, err
	}
	var defs []tokencount.Definition
	for _, f := range best.Tools {
		if t, ok := b.gateway.Catalog.Tool(f.ID); ok {
			defs = append(defs, definition(t))
		}
	}
	turn.Results = []tokencount.Result{agent.SearchResult(defs)}
	return turn, nil
}
