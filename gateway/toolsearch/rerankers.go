package toolsearch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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
	feedback   atomic.Pointer[feedbackStore]
	embeddings atomic.Pointer[ranker]

	mu     sync.Mutex // held while they change
	closed bool
}

// feedbackStore is the feedback store and its files.
type feedbackStore struct {
	*feedback.Store
	files *feedback.Files // nil: in memory only
}

func (s *feedbackStore) close() error {
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
	weight   atomic.Pointer[float64] // in searches; 0 is not used, nil is not judged yet
	unwatch  func()
	stop     context.CancelFunc // ends the judgment
	work     sync.WaitGroup
}

func (r *ranker) close() error {
	if r == nil {
		return nil
	}
	r.unwatch()
	r.stop()
	r.work.Wait()
	return r.Close()
}

// Apply applies settings, from the next query on.
func (sr *Searcher) Apply(cfg config.Search) {
	sr.rerankers.mu.Lock()
	defer sr.rerankers.mu.Unlock()
	if sr.rerankers.closed {
		return
	}
	if cfg.Learn != (sr.rerankers.feedback.Load() != nil) {
		sr.warn("close search feedback", sr.rerankers.feedback.Swap(sr.openFeedback(cfg.Learn)).close())
	}
	old := sr.rerankers.embeddings.Load()
	if (cfg.Embeddings != nil) != (old != nil) || old != nil && !reflect.DeepEqual(old.settings, *cfg.Embeddings) {
		sr.warn("close embeddings", sr.rerankers.embeddings.Swap(sr.openEmbeddings(cfg.Embeddings)).close())
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
	a.closed = true
	return errors.Join(a.feedback.Swap(nil).close(), a.embeddings.Swap(nil).close())
}

// openFeedback opens the feedback store; it returns nil if on is false.
func (sr *Searcher) openFeedback(on bool) *feedbackStore {
	opts := &feedback.Options{Logger: sr.opts.Logger}
	switch {
	case !on:
		return nil
	case sr.opts.Records.Shared():
		shared, err := feedback.NewShared(sr.opts.Records)
		if err != nil { // only for an invalid name
			sr.opts.Logger.Warn("search feedback is kept in memory only", "error", err)
			return &feedbackStore{Store: feedback.New(nil, opts)}
		}
		opts.Reload = time.Minute
		return &feedbackStore{Store: feedback.New(shared, opts)}
	case sr.opts.CacheDir == "":
		return &feedbackStore{Store: feedback.New(nil, opts)}
	}
	files, err := feedback.OpenFiles(filepath.Join(sr.opts.CacheDir, "clicks"))
	if err != nil {
		sr.opts.Logger.Warn("search feedback is kept in memory only", "error", err)
		return &feedbackStore{Store: feedback.New(nil, opts)}
	}
	return &feedbackStore{feedback.New(files, opts), files}
}

// openEmbeddings opens the embeddings endpoint of the settings; nil if there is none.
func (sr *Searcher) openEmbeddings(cfg *config.Embeddings) *ranker {
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
		r.Replace(embeddingTexts(sr.opts.Catalog.Snapshot()))
	}
	unwatch := sr.opts.Catalog.Watch(show)
	show()
	one := &ranker{Ranker: r, settings: *cfg, unwatch: unwatch}
	ctx, stop := context.WithCancel(context.Background())
	one.stop = stop
	one.work.Go(func() { one.judge(ctx, sr, opts.Dir) })
	return one
}

// EmbeddingsOf converts the settings of an endpoint for package embeddings.
func EmbeddingsOf(cfg config.Embeddings) embeddings.Settings {
	return embeddings.Settings{URL: cfg.URL, Model: cfg.Model, QueryPrefix: cfg.QueryPrefix, DocumentPrefix: cfg.DocumentPrefix,
		Headers: maps.Clone(cfg.Headers), Timeout: cfg.Timeout}
}

const (
	// maxToolText and maxUpstreamText are how much of the descriptions of a tool and its
	// upstream is embedded, in characters.
	maxToolText     = 400
	maxUpstreamText = 120
)

// embeddingTexts returns the text that is embedded for each tool: its name in words, what it does, and
// its upstream. Held tools are left out.
func embeddingTexts(s *catalog.Snapshot) []embeddings.Document {
	callable := make(map[tool.ID]bool, len(s.Tools))
	for _, t := range s.Tools {
		callable[t.ID] = true
	}
	all := make([]embeddings.Document, 0, len(s.Tools))
	for _, d := range s.Docs {
		if !callable[d.ID] {
			continue
		}
		all = append(all, embeddings.Document{ID: d.ID, Text: embeddedText(&d)})
	}
	return all
}

func embeddedText(d *index.Doc) string {
	text := splitName(d.ID.Upstream) + ": " + splitName(cmp.Or(d.Wire, d.ID.Name)) + ". " + sanitize.Line(d.Title+" "+d.Description, maxToolText)
	if about := sanitize.Line(d.Upstream, maxUpstreamText); about != "" {
		text += " (" + about + ")"
	}
	return text
}

// splitName splits a name into words: createIssue and create_issue are "create issue".
func splitName(name string) string {
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

// addSignals adds the ranking by embeddings and the boosts by feedback to a query. It
// returns the weights of the query's words if feedback is enabled.
func (sr *Searcher) addSignals(ctx context.Context, q *index.Query) (words map[string]float64) {
	if q.Text == "" {
		return nil
	}
	if r := sr.rerankers.embeddings.Load(); r != nil {
		only := sr.opts.Endpoints.Of(ctx)
		q.Also, q.AlsoWeight = r.rank(ctx, q.Text, func(id tool.ID) bool { return (q.Upstream == "" || id.Upstream == q.Upstream) && only.Has(id) })
	}
	if store := sr.rerankers.feedback.Load(); store != nil {
		words = sr.opts.Catalog.Weigh(ctx, q.Text)
		q.Favour = store.Boost(tool.Principal(ctx), words, sr.opts.Catalog.Digest)
	}
	return words
}

// rank ranks as [embeddings.Ranker.Rank] does, with the weight of the ranking; nil if the model makes searches worse.
func (r *ranker) rank(ctx context.Context, query string, keep func(tool.ID) bool) (ids []tool.ID, weight float64) {
	if judged := r.weight.Load(); judged != nil {
		if weight = *judged; weight == 0 {
			return nil, 0
		}
	}
	return r.Rank(ctx, query, keep), weight
}

// recordSearch records which tools were shown for a query, to match later calls.
func (sr *Searcher) recordSearch(ctx context.Context, found Found) {
	store := sr.rerankers.feedback.Load()
	if store == nil || len(found.words) == 0 {
		return
	}
	var shown []tool.ID
	for _, t := range found.Tools {
		if sr.opts.Catalog.Digest(t.ID) != "" { // else it is not a tool
			shown = append(shown, t.ID)
		}
	}
	store.RecordSearch(callerOf(ctx), found.words, shown)
}

func callerOf(ctx context.Context) feedback.Caller {
	return feedback.Caller{Principal: tool.Principal(ctx), Session: tool.Session(ctx)}
}

// Learn is middleware that records successful calls: tools that a caller calls after
// a search rank higher in its next searches.
func (sr *Searcher) Learn(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		result, err := next(ctx, c)
		store := sr.rerankers.feedback.Load()
		if store == nil || err != nil || result.IsError || c.Tool.Method() != "tools/call" || catalog.NeedsInput(c, result) {
			return result, err
		}
		if digest := sr.opts.Catalog.Digest(c.Tool); digest != "" {
			store.RecordCall(callerOf(ctx), c.Execution, c.Tool, digest)
		}
		return result, nil
	}
}
