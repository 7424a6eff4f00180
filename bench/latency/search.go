package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sallyport/bench/bareserver"
	"sallyport/bench/corpus"
	"sallyport/bench/stats"
	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/index"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

const (
	// hits is how many hits are asked for, gatewayMost the most tools that a gateway is opened with here.
	hits        = 10
	gatewayMost = 2000
)

// searching is what a query costs, compared with bleve's match query on the same texts.
func searching(ctx context.Context, b *bench) error {
	for _, size := range b.sizes {
		p, err := b.pair(size)
		if err != nil {
			return err
		}
		if err := b.searching(ctx, p); err != nil {
			return fmt.Errorf("%d tools: %w", size, err)
		}
		if size > gatewayMost {
			continue
		}
		if err := b.throughGateway(ctx, p); err != nil {
			return fmt.Errorf("%d tools, through the gateway: %w", size, err)
		}
	}
	return nil
}

// barQuery is the bar on a query of so many tools, in milliseconds; 0 where it has none.
func barQuery(tools int) float64 {
	return map[int]float64{2000: 2, 100_000: 15}[tools]
}

func (b *bench) searching(ctx context.Context, p *pair) error {
	return b.asking(ctx, barQuery(len(p.tools)), "query of %s tools", "index and bleve are asked for 10 hits of each query of bench/search/queries.jsonl, by turns", p,
		func(text string) (int, error) {
			found, err := p.ours.Search(ctx, index.Query{Text: text, Limit: hits})
			return len(found.Hits), err
		})
}

// throughGateway asks a gateway with upstreams in this process: what search_tools answers, as text.
func (b *bench) throughGateway(ctx context.Context, p *pair) (err error) {
	g, done, err := b.openMany(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return b.asking(ctx, 0, "search_tools with %s tools", "Gateway.Search and its answer as text, with signatures; bare is bleve's list of ids", p,
		func(text string) (int, error) {
			found, err := g.Searcher.Search(ctx, toolsearch.Request{Query: text})
			_ = found.Text() // a model reads it, so writing it is in the time; that something was said is no sign of a hit
			return len(found.Tools), err
		})
}

// asking measures each query in ours and in bleve, by turns, against a limit in milliseconds if there is one. What ours returns is how much was found.
func (b *bench) asking(ctx context.Context, limit float64, name, note string, p *pair, ours func(text string) (int, error)) error {
	bare := func(text string) (int, error) {
		ids, err := p.bare.Search(ctx, text, hits)
		return len(ids), err
	}
	texts := b.tools.Queries[:min(len(b.tools.Queries), 20*b.n)]
	var found [2]int
	at := -1
	ask := func(search func(string) (int, error), sum *int) func() (float64, error) {
		return func() (float64, error) {
			return since(func() error {
				n, err := search(texts[at])
				*sum += n
				return err
			})
		}
	}
	took, alone, err := byTurns(ctx, len(texts), func() { at++ }, ask(ours, &found[0]), ask(bare, &found[1]))
	if err == nil && (found[0] < len(texts) || found[1] < len(texts)) {
		err = fmt.Errorf("%d queries found %d and %d: there is nothing to compare", len(texts), found[0], found[1])
	}
	if err != nil {
		return err
	}
	r := row{Case: fmt.Sprintf(name, thousands(len(p.tools))), Unit: "ms", Compared: stats.Compare(took, alone), Note: note}
	if limit > 0 {
		r.Bars = []bar{atMost("p50 ms", limit, r.P50)}
	}
	b.add(r)
	return nil
}

// openMany opens a gateway in this process to a server over HTTP for each server of the tools.
func (b *bench) openMany(ctx context.Context, p *pair) (*gateway.Gateway, func() error, error) {
	dir, err := b.folder()
	if err != nil {
		return nil, nil, err
	}
	servers := corpus.ByServer(p.tools)
	g, done, err := b.openWith(ctx, dir, listing(servers), func(cfg *config.Config, opts *gateway.Options) {
		opts.NoPool, cfg.Search.Learn = true, false
		one := cfg.Upstreams[0]
		cfg.Upstreams = nil
		for i, s := range servers {
			one.Name, one.ID, one.URL = s.Name, tool.Identifier(s.Name), listingURL(i)
			cfg.Upstreams = append(cfg.Upstreams, one)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	if got := len(g.Catalog.Tools()); got != len(p.tools) {
		return nil, nil, errors.Join(fmt.Errorf("the gateway has %d of the %d tools", got, len(p.tools)), done())
	}
	return g, done, nil
}

// listing serves the servers, each at a path of its own.
func listing(servers []corpus.Server) http.Handler {
	mux := http.NewServeMux()
	for i, s := range servers {
		mux.Handle(fmt.Sprintf("/%d", i), &bareserver.Server{List: s.List()})
	}
	return mux
}

func listingURL(i int) string { return fmt.Sprintf("http://localhost/%d", i) }
