// Package index searches tools by words. Its main type is [Index], which ranks
// documents in memory and can cache the results of their analysis on disk. It is
// the only package that uses bleve, except for the benchmark that compares with
// bleve's default setup.
package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/tool"
)

// ErrClosed is what Search and Replace return after Close.
var ErrClosed = errors.New("index closed")

// Query is a search for tools.
type Query struct {
	// Text is what a model typed: words, a sentence, a name or a part of one.
	// "upstream:NAME" in it restricts the search like Upstream does. Any text of any
	// length is allowed; only its first 4,096 bytes are read.
	Text string
	// Upstream restricts the search to one upstream id; "" searches all.
	Upstream string
	// Limit is the maximum number of hits; 0 or less means 10.
	Limit int
	// Favour boosts tools that proved useful for similar queries, 0 to 1 each.
	Favour map[tool.ID]float64
	// Also is another ranking of the tools for this query, best first; both are fused by reciprocal rank.
	Also []tool.ID
	// AlsoWeight is the weight of Also relative to the index's own ranking; 0 is [AlsoWeight].
	AlsoWeight float64
}

// Hit is one matching document.
type Hit struct {
	ID   tool.ID
	Kind Kind
	// Score orders the hits of one search; scores of different searches are not comparable.
	Score float64
	// Cover is the share of the query's words that the tool has, 0 to 1, each word
	// weighted by its rarity.
	Cover float64
}

// Results is the result of a search.
type Results struct {
	// Hits are the best documents, best first; equal scores in order of id.
	Hits []Hit
	// Total counts the documents that matched at all.
	Total int
	// Words counts the distinct words of the query, without stop words.
	Words int
	// Weak reports that no document fits well: the hits are the nearest, not an answer.
	Weak bool
	// Confidence is the estimated probability that one of the first five hits is right; 0 where none was estimated.
	Confidence float64
	// Needs counts the subqueries that a document fits well, if there are several, else 0. The best document of each is
	// among the first hits.
	Needs int
	// Unmatched holds the words of the query that no document has.
	Unmatched []string
	// Suggest holds known words and ids similar to the unmatched ones, for "did you mean".
	Suggest []string
	// Upstreams holds the ids of promising upstreams if no tool fits well, best first.
	Upstreams []string
}

// Options configure an index; nil means all defaults.
type Options struct {
	// Logger gets a line per build; nil discards.
	Logger *slog.Logger
	// Dir is a folder that caches the results of analysis, so that a catalog that was
	// indexed before is not analyzed again. New creates the folder; several indexes and
	// processes may share it. Lost or damaged files are rebuilt. "" disables the cache.
	Dir string
}

// defaultLimit is the number of hits if the query sets no limit, maxLimit the maximum limit.
const (
	defaultLimit = 10
	maxLimit     = 10_000
)

// Index searches documents. All methods are safe for concurrent use.
type Index struct {
	logger *slog.Logger
	// current is the snapshot that searches use; nil after Close.
	current atomic.Pointer[snapshot]
	// change serializes Replace and Close.
	change    sync.Mutex
	closed    bool
	cache     *diskCache // nil disables the disk cache
	store     *store     // nil before the first Replace and after a failed one
	oldStores []*store   // stores that the current snapshot may still read
}

// New builds an index of docs.
func New(docs []Doc, opts *Options) (*Index, error) {
	ix := &Index{logger: slog.New(slog.DiscardHandler)}
	if opts != nil && opts.Logger != nil {
		ix.logger = opts.Logger
	}
	if opts != nil && opts.Dir != "" {
		known, err := readBuiltIn()
		if err != nil {
			return nil, fmt.Errorf("build index: %w", err)
		}
		ix.cache = openDiskCache(opts.Dir, ix.logger, analysisDigest(known.analyzers, defaultWeights()))
	}
	if err := ix.Replace(docs); err != nil {
		return nil, errors.Join(err, ix.cache.close())
	}
	return ix, nil
}

// Replace makes docs the content of the index. Of several documents with one id it
// keeps the first. Its cost depends on what differs from the old content, which
// searches use until Replace returns. After an error the old content stays. The
// caller must not modify the parameters of docs afterwards.
func (ix *Index) Replace(docs []Doc) error {
	ix.change.Lock()
	defer ix.change.Unlock()
	if ix.closed {
		return ErrClosed
	}
	start := time.Now()
	if ix.store == nil {
		var err error
		if ix.store, err = newStore(defaultWeights(), ix.cache); err != nil {
			return fmt.Errorf("build index: %w", err)
		}
	}
	next, err := ix.store.update(sortedDocs(docs))
	if err != nil {
		ix.oldStores, ix.store = append(ix.oldStores, ix.store), nil
		return fmt.Errorf("build index: %w", err)
	}
	ix.logger.Debug("index built", "tools", len(next.docs), "upstreams", len(next.upstreams), "analyzed", ix.store.analyzedDocs, "known", ix.store.cachedDocs, "took", time.Since(start))
	return ix.swap(next)
}

// swap makes next the current snapshot, and closes the stores that no snapshot reads any more.
func (ix *Index) swap(next *snapshot) error {
	var errs []error
	if old := ix.current.Swap(next); old != nil {
		errs = append(errs, old.retire())
	}
	for _, st := range ix.oldStores {
		errs = append(errs, st.close())
	}
	ix.oldStores = nil
	return errors.Join(errs...)
}

// Search returns the documents that match q. It accepts any text: the only errors
// are an ended context and a closed index. For an empty text with an upstream it
// lists that upstream's tools sorted by name; for an empty text alone it returns no
// hits.
func (ix *Index) Search(ctx context.Context, q Query) (Results, error) {
	for {
		s := ix.current.Load()
		if s == nil {
			return Results{}, ErrClosed
		}
		if res, ok, err := s.trySearch(ctx, q); ok {
			return res, err
		}
	}
}

// trySearch runs a search. ok is false if the snapshot is retired.
func (s *snapshot) trySearch(ctx context.Context, q Query) (res Results, ok bool, err error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.retired {
		return Results{}, false, nil
	}
	res, err = s.search(ctx, q)
	return res, true, err
}

// Close releases the index. It waits for running searches. Further calls do nothing.
func (ix *Index) Close() error {
	ix.change.Lock()
	defer ix.change.Unlock()
	if ix.closed {
		return nil
	}
	ix.closed = true
	if ix.store != nil {
		ix.oldStores, ix.store = append(ix.oldStores, ix.store), nil
	}
	return errors.Join(ix.swap(nil), ix.cache.close())
}
