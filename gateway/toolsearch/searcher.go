// Package toolsearch answers a query with ranked hits, told as far as a budget of tokens allows: tools of the catalog, and
// what is found beside them: functions for programs, resources, prompts, and things of other sources such as skills.
// Its owner is [Searcher].
package toolsearch

import (
	"context"
	"errors"
	"log/slog"

	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/guard"
	"sallyport/index"
	"sallyport/internal/config"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Options are what a searcher searches. All but Telemetry and CacheDir are required.
type Options struct {
	Catalog *catalog.Catalog
	Guard   *guard.Guard
	// Skills are found under the upstream id [toolcall.SkillsID].
	Skills Source
	Logger *slog.Logger
	// CacheDir keeps what was learned from calls, and vectors of tools; "" is memory.
	CacheDir  string
	Meter     *execution.Meter
	Telemetry *telemetry.Telemetry
	// Problem says in one line why the settings' file is not in force, "" if it is.
	Problem func() string
}

// Source has things that are found beside tools.
type Source interface {
	// Find returns what fits a query of the caller, best first; all, by name, for "".
	Find(ctx context.Context, query string, limit int) ([]Item, error)
	// Describe tells all about one thing.
	Describe(ctx context.Context, name string) (FoundTool, error)
}

// Item is one thing of a source.
type Item struct {
	ID   tool.ID
	Name string
	// Cover is how much of the query it has, from 0 to 1; Words is how many words the query has. Weak says that it fits badly.
	Cover float64
	Words int
	Weak  bool
	// Broken says that it cannot be used.
	Broken bool
	Tell   func(Detail) FoundTool
}

// Searcher finds tools, and what else programs can use. It is safe for concurrent use.
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

// Close keeps what was learned.
func (sr *Searcher) Close() error { return errors.Join(sr.rerankers.close(), sr.functions.Close()) }
