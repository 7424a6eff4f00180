// Package index finds tools from the words that a model has. Its main type is
// [Index]: documents in, ranked hits out, all in memory; what analysis found out
// may be kept on disk. It is the only package that knows of bleve, but for the
// benchmark that sets bleve up as others do.
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

// Query asks for tools.
type Query struct {
	// Text is whatever a model typed: words, a sentence, a name, a part of one.
	// "upstream:NAME" in it restricts the search like Upstream does. Any text is
	// allowed, of any length; only so much of it as a person could mean is read.
	Text string
	// Upstream restricts the search to one upstream id; "" searches all.
	Upstream string
	// Limit is the most hits that come back; 0 or less means 10.
	Limit int
	// Favour lifts tools that have proved useful for queries like this one, 0 to 1 each.
	Favour map[tool.ID]float64
	// Also is another ranking of the tools for this query, best first; both are fused by reciprocal rank.
	Also []tool.ID
}

// Hit is one document that was found.
type Hit struct {
	ID   tool.ID
	Kind Kind
	// Score orders the hits of one search; scores of different searches do not compare.
	Score float64
	// Cover is how much of what was asked for the tool has, 0 to 1: its share of
	// the query's words, each weighed by how rare it is.
	Cover float64
}

// Results is what a search found.
type Results struct {
	// Hits are the best documents, best first; equal scores in order of id.
	Hits []Hit
	// Total counts the documents that matched at all.
	Total int
	// Words counts the different words of the query that say something.
	Words int
	// Weak says that nothing fits well: the hits are the nearest, not an answer.
	Weak bool
	// Unmatched holds the words of the query that no document has.
	Unmatched []string
	// Suggest holds known words and ids near to the unmatched ones, for "did you mean".
	Suggest []string
	// Upstreams holds the ids of those that look right where no tool fits well, best first.
	Upstreams []string
}

// Options configure an index; nil means all defaults.
type Options struct {
	// Logger gets a line per build; nil discards.
	Logger *slog.Logger
	// Dir is a folder for what analysis found out, so that an index of a catalog
	// that was indexed before is made without it. It is made if it is not there;
	// several indexes and processes may share one. What is in it may be lost or
	// damaged, and is then analyzed again. "" keeps nothing.
	Dir string
}

// defaultLimit is how many hits come back unless the query says, maxLimit the most whatever it says.
const (
	defaultLimit = 10
	maxLimit     = 10_000
)

// Index finds documents. All methods are safe for concurrent use.
type Index struct {
	logger *slog.Logger
	// now is what searches see; nil once closed.
	now atomic.Pointer[snapshot]
	// change is held while the content is being replaced.
	change sync.Mutex
	closed bool
	saved  *saved   // nil keeps nothing
	store  *store   // nil until the first Replace, and after one that failed
	spent  []*store // what the snapshot may still read
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
		ix.saved = openSaved(opts.Dir, ix.logger, analysisDigest(known.words, defaultWeights()))
	}
	if err := ix.Replace(docs); err != nil {
		return nil, errors.Join(err, ix.saved.close())
	}
	return ix, nil
}

// Replace makes docs the content of the index; of several with one id the
// first counts. It costs little more than what differs from the old content, on
// which searches continue. After an error the old content stays. docs
// belong to the index from then on: their parameters must not be written to.
func (ix *Index) Replace(docs []Doc) error {
	ix.change.Lock()
	defer ix.change.Unlock()
	if ix.closed {
		return ErrClosed
	}
	start := time.Now()
	if ix.store == nil {
		var err error
		if ix.store, err = newStore(defaultWeights(), ix.saved); err != nil {
			return fmt.Errorf("build index: %w", err)
		}
	}
	next, err := ix.store.update(sortedDocs(docs))
	if err != nil {
		ix.spent, ix.store = append(ix.spent, ix.store), nil
		return fmt.Errorf("build index: %w", err)
	}
	ix.logger.Debug("index built", "tools", len(next.docs), "upstreams", len(next.upstreams), "analyzed", ix.store.learned, "known", ix.store.recalled, "took", time.Since(start))
	return ix.swap(next)
}

// swap shows next, and closes the stores that no snapshot reads any more.
func (ix *Index) swap(next *snapshot) error {
	var errs []error
	if old := ix.now.Swap(next); old != nil {
		errs = append(errs, old.retire())
	}
	for _, st := range ix.spent {
		errs = append(errs, st.close())
	}
	ix.spent = nil
	return errors.Join(errs...)
}

// Search finds the documents that fit q. No text is an error; the only errors
// are a context that ends and an index that is closed. An empty text with an
// upstream lists that upstream's tools in the order of their names; without
// one it finds nothing.
func (ix *Index) Search(ctx context.Context, q Query) (Results, error) {
	for {
		s := ix.now.Load()
		if s == nil {
			return Results{}, ErrClosed
		}
		if res, ok, err := s.guarded(ctx, q); ok {
			return res, err
		}
	}
}

// guarded searches unless the snapshot is retired, which ok tells.
func (s *snapshot) guarded(ctx context.Context, q Query) (res Results, ok bool, err error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.retired {
		return Results{}, false, nil
	}
	res, err = s.search(ctx, q)
	return res, true, err
}

// Close releases the index. It waits for searches that are under way; another call does nothing.
func (ix *Index) Close() error {
	ix.change.Lock()
	defer ix.change.Unlock()
	if ix.closed {
		return nil
	}
	ix.closed = true
	if ix.store != nil {
		ix.spent, ix.store = append(ix.spent, ix.store), nil
	}
	return errors.Join(ix.swap(nil), ix.saved.close())
}
