// Package index finds tools from the words that a model has. Its main type is
// [Index]: documents in, ranked hits out, all in memory. It is the only package
// that knows of bleve.
package index

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/blevesearch/bleve/v2"

	"sallyport/internal/tool"
)

// ErrClosed is what Search and Replace return after Close.
var ErrClosed = errors.New("index closed")

// Query asks for tools.
type Query struct {
	// Text is whatever a model typed: words, a sentence, a name, a part of one.
	// "upstream:NAME" in it restricts the search like Upstream does. Any text is
	// allowed, of any length; only so much of it as a person could mean is read.
	Text string
	// Upstream restricts the search to one upstream id; "" searches all.
	Upstream string
	// Limit is the most hits that come back; 0 means 10.
	Limit int
}

// Hit is one tool that was found.
type Hit struct {
	ID tool.ID
	// Score orders the hits of one search; scores of different searches do not compare.
	Score float64
}

// Results is what a search found.
type Results struct {
	// Hits are the best documents, best first; equal scores in order of id.
	Hits []Hit
	// Total counts the documents that matched at all.
	Total int
	// Weak says that nothing fits well: the hits are the nearest, not an answer.
	Weak bool
	// Unmatched holds the words of the query that no document has.
	Unmatched []string
	// Suggest holds known words and ids near to the unmatched ones, for "did you mean".
	Suggest []string
}

// Options configure an index; nil means all defaults.
type Options struct {
	// Logger gets a line per build; nil discards.
	Logger *slog.Logger
}

// Index finds documents. All methods are safe for concurrent use.
type Index struct {
	logger *slog.Logger
	mu     sync.RWMutex
	ix     bleve.Index
	ids    map[string]tool.ID
}

// New builds an index of docs.
func New(docs []Doc, opts *Options) (*Index, error) {
	ix := &Index{logger: slog.New(slog.DiscardHandler)}
	if opts != nil && opts.Logger != nil {
		ix.logger = opts.Logger
	}
	return ix, ix.Replace(docs)
}

// Replace makes docs the content of the index. Searches go on meanwhile, on
// what was there before.
func (ix *Index) Replace(docs []Doc) error {
	b, err := bleve.NewMemOnly(bleve.NewIndexMapping())
	if err != nil {
		return err
	}
	ids := map[string]tool.ID{}
	for _, d := range docs {
		ids[d.ID.String()] = d.ID
		if err := b.Index(d.ID.String(), map[string]any{"name": d.ID.Name, "description": d.Description, "upstream": d.Upstream}); err != nil {
			return err
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.ix != nil {
		err = ix.ix.Close()
	}
	ix.ix, ix.ids = b, ids
	return err
}

// Search finds the documents that fit q.
func (ix *Index) Search(ctx context.Context, q Query) (Results, error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.ix == nil {
		return Results{}, ErrClosed
	}
	req := bleve.NewSearchRequestOptions(bleve.NewMatchQuery(q.Text), max(q.Limit, 10), 0, false)
	found, err := ix.ix.SearchInContext(ctx, req)
	if err != nil {
		return Results{}, err
	}
	res := Results{Total: int(found.Total)}
	for _, h := range found.Hits {
		res.Hits = append(res.Hits, Hit{ID: ix.ids[h.ID], Score: h.Score})
	}
	return res, nil
}

// Close releases the index; it waits for searches that are under way and may be called again.
func (ix *Index) Close() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.ix == nil {
		return nil
	}
	err := ix.ix.Close()
	ix.ix = nil
	return err
}
