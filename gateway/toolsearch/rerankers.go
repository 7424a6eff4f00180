package toolsearch

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"sallyport/gateway/catalog"
	"sallyport/gateway/embeddings"
	"sallyport/gateway/feedback"
	"sallyport/gateway/toolcall"
	"sallyport/index"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// rerankers are the optional inputs to ranking: feedback from calls, and embeddings. Each
// is enabled by the settings; search works without it if it is disabled or fails.
type rerankers struct {
	clicks  atomic.Pointer[clickStore]
	meaning atomic.Pointer[ranker]

	mu    sync.Mutex // held while they change
	ended bool
}

// clickStore is the feedback store and its files.
type clickStore struct {
	*feedback.Store
	files *feedback.Files // nil: in memory only
}

func (s *clickStore) close() error {
	if s == nil {
		return nil
	}
	s.Close()
	if s.files == nil {
		return nil
	}
	return s.files.Close()
}

// ranker is an embeddings endpoint that follows changes of the catalog.
type ranker struct {
	*embeddings.Ranker
	settings config.Embeddings
	unwatch  func()
}

func (r *ranker) close() error {
	if r == nil {
		return nil
	}
	r.unwatch()
	return r.Close()
}

// Apply applies settings, from the next query on.
func (sr *Searcher) Apply(cfg config.Search) {
	sr.rerankers.mu.Lock()
	defer sr.rerankers.mu.Unlock()
	if sr.rerankers.ended {
		return
	}
	if cfg.Learn != (sr.rerankers.clicks.Load() != nil) {
		sr.warn("close search feedback", sr.rerankers.clicks.Swap(sr.openClicks(cfg.Learn)).close())
	}
	old := sr.rerankers.meaning.Load()
	if (cfg.Embeddings != nil) != (old != nil) || old != nil && !reflect.DeepEqual(old.settings, *cfg.Embeddings) {
		sr.warn("close embeddings", sr.rerankers.meaning.Swap(sr.openMeaning(cfg.Embeddings)).close())
	}
}

func (sr *Searcher) warn(what string, err error) {
	if err != nil {
		sr.opts.Logger.Warn(what, "error", err.Error())
	}
}

// close saves what was learned.
func (a *rerankers) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return errors.Join(a.clicks.Swap(nil).close(), a.meaning.Swap(nil).close())
}

// openClicks opens the feedback store; it returns nil if on is false.
func (sr *Searcher) openClicks(on bool) *clickStore {
	opts := &feedback.Options{Logger: sr.opts.Logger}
	switch {
	case !on:
		return nil
	case sr.opts.CacheDir == "":
		return &clickStore{Store: feedback.New(nil, opts)}
	}
	files, err := feedback.OpenFiles(filepath.Join(sr.opts.CacheDir, "clicks"))
	if err != nil {
		sr.opts.Logger.Warn("search feedback is kept in memory only", "error", err)
		return &clickStore{Store: feedback.New(nil, opts)}
	}
	return &clickStore{feedback.New(files, opts), files}
}

// openMeaning opens the embeddings endpoint of the settings; nil if there is none.
func (sr *Searcher) openMeaning(cfg *config.Embeddings) *ranker {
	if cfg == nil {
		return nil
	}
	if cfg.Problem != "" {
		sr.opts.Logger.Warn("embeddings are not used", "reason", cfg.Problem)
		return nil
	}
	opts := &embeddings.Options{Logger: sr.opts.Logger}
	if sr.opts.CacheDir != "" {
		opts.Dir = filepath.Join(sr.opts.CacheDir, "embeddings")
	}
	r, err := embeddings.New(EmbeddingsOf(*cfg), opts)
	if err != nil {
		sr.opts.Logger.Warn("embeddings are not used", "error", err.Error())
		return nil
	}
	var showing sync.Mutex // so that the newest snapshot is applied last
	show := func() {
		showing.Lock()
		defer showing.Unlock()
		r.Replace(texts(sr.opts.Catalog.Snapshot()))
	}
	unwatch := sr.opts.Catalog.Watch(show)
	show()
	return &ranker{r, *cfg, unwatch}
}

// EmbeddingsOf converts the settings of an endpoint for package embeddings.
func EmbeddingsOf(cfg config.Embeddings) embeddings.Settings {
	return embeddings.Settings{URL: cfg.URL, Model: cfg.Model, Headers: maps.Clone(cfg.Headers), Timeout: cfg.Timeout}
}

const (
	// aboutTool and aboutUpstream are how much of the descriptions of a tool and its
	// upstream is embedded, in characters.
	aboutTool     = 400
	aboutUpstream = 120
)

// texts returns the text that is embedded for each tool: its name in words, what it does, and
// its upstream. Held tools are left out.
func texts(s *catalog.Snapshot) []embeddings.Document {
	callable := make(map[tool.ID]bool, len(s.Tools))
	for _, t := range s.Tools {
		callable[t.ID] = true
	}
	all := make([]embeddings.Document, 0, len(s.Tools))
	for _, d := range s.Docs {
		if !callable[d.ID] {
			continue
		}
		name := d.Wire
		if name == "" {
			name = d.ID.Name
		}
		text := spaced(d.ID.Upstream) + ": " + spaced(name) + ". " + sanitize.Line(d.Title+" "+d.Description, aboutTool)
		if about := sanitize.Line(d.Upstream, aboutUpstream); about != "" {
			text += " (" + about + ")"
		}
		all = append(all, embeddings.Document{ID: d.ID, Text: text})
	}
	return all
}

// spaced splits a name into words: createIssue and create_issue are "create issue".
func spaced(name string) string {
	var b strings.Builder
	small := false
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		if small && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// aided adds the ranking by embeddings and the boosts by feedback to a query. It
// returns the weights of the query's words if feedback is enabled.
func (sr *Searcher) aided(ctx context.Context, q *index.Query) (words map[string]float64) {
	if q.Text == "" {
		return nil
	}
	if r := sr.rerankers.meaning.Load(); r != nil {
		q.Also = r.Rank(ctx, q.Text, func(id tool.ID) bool { return q.Upstream == "" || id.Upstream == q.Upstream })
	}
	if store := sr.rerankers.clicks.Load(); store != nil {
		words = sr.opts.Catalog.Weigh(ctx, q.Text)
		q.Favour = store.Favour(tool.Principal(ctx), words, sr.opts.Catalog.Digest)
	}
	return words
}

// searched records which tools were shown for a query, to match later calls.
func (sr *Searcher) searched(ctx context.Context, found Found) {
	store := sr.rerankers.clicks.Load()
	if store == nil || len(found.words) == 0 {
		return
	}
	var shown []tool.ID
	for _, t := range found.Tools {
		if sr.opts.Catalog.Digest(t.ID) != "" { // else it is not a tool
			shown = append(shown, t.ID)
		}
	}
	store.Searched(who(ctx), found.words, shown)
}

func who(ctx context.Context) feedback.Who {
	return feedback.Who{Principal: tool.Principal(ctx), Session: tool.Session(ctx)}
}

// Learn is middleware that records successful calls: tools that a caller calls after
// a search rank higher in its next searches.
func (sr *Searcher) Learn(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		result, err := next(ctx, c)
		store := sr.rerankers.clicks.Load()
		if store == nil || err != nil || result.IsError || c.Tool.Method() != "tools/call" || catalog.Asks(c, result) {
			return result, err
		}
		if digest := sr.opts.Catalog.Digest(c.Tool); digest != "" {
			store.Called(who(ctx), c.Execution, c.Tool, digest)
		}
		return result, nil
	}
}
