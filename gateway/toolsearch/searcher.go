// Package toolsearch answers a query with ranked hits, in as much detail as a budget of tokens allows: tools of the catalog,
// functions for programs, resources, prompts, and items of other sources such as skills. Its main type is [Searcher].
package toolsearch

import (
	"context"
	"errors"
	"log/slog"

	"sallyport/gateway/catalog"
	"sallyport/gateway/confine"
	"sallyport/gateway/execution"
	"sallyport/gateway/guard"
	"sallyport/index"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Options configure a searcher. All but Telemetry, CacheDir and Records are required.
type Options struct {
	Catalog *catalog.Catalog
	Guard   *guard.Guard
	// Endpoints decides which tools exist for a caller, Upstreams returns the upstreams that the caller sees.
	Endpoints *confine.Endpoints
	Upstreams func(ctx context.Context) []catalog.Upstream
	// Skills are found under the upstream id [toolcall.SkillsID].
	Skills Source
	Logger *slog.Logger
	// Records has what several gateways learn from calls, if they share it.
	Records *store.Store
	// CacheDir stores what was learned from calls, and vectors of tools; "" keeps them in memory.
	CacheDir  string
	Meter     *execution.Meter
	Telemetry *telemetry.Telemetry
	// Problem returns one line that says why the settings file is not in force, "" if it is.
	Problem func() string
}

// Source provides items that search finds in addition to tools.
type Source interface {
	// Find returns the items that match a query of the caller, best first; all items, by name, for "".
	Find(ctx context.Context, query string, limit int) ([]Item, error)
	// Describe returns the full description of one item.
	Describe(ctx context.Context, name string) (FoundTool, error)
}

// Item is one item of a source.
type Item struct {
	ID   tool.ID
	Name string
	// Cover is how much of the query it matches, from 0 to 1; Words is the number of words of the query. Weak marks a bad match.
	Cover float64
	Words int
	Weak  bool
	// Broken says that it cannot be used.
	Broken   bool
	Describe func(Detail) FoundTool
}

// Searcher finds tools and other things that programs can use. It is safe for concurrent use.
type Searcher struct {
	opts      Options
	functions *index.Index // what programs can import from "sallyport"
	rerankers rerankers
}

// New returns a searcher. Close it.
func New(opts Options, cfg config.Search) (*Searcher, error) {
	functions, err := functionIndex()
	if err != nil {
		return nil, err
	}
	sr := &Searcher{opts: opts, functions: functions}
	sr.Apply(cfg)
	return sr, nil
}

// Close saves what was learned.
func (sr *Searcher) Close() error { return errors.Join(sr.rerankers.close(), sr.functions.Close()) }
