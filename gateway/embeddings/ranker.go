package embeddings

import (
	"container/list"
	"context"
	"crypto/sha256"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/tool"
)

const (
	// maxText is how much of a text is embedded, in bytes.
	maxText = 2000
	// maxInflight is how many queries are in flight at once, maxQueryTime how long one may
	// take: a search does not wait that long, but a later one uses the vector.
	maxInflight  = 4
	maxQueryTime = 10 * time.Second
	// maxCached is how many queries are cached.
	maxCached = 256
	// maxMismatches is how often vectors of another length are rejected before they are accepted.
	maxMismatches = 3
	// minCoverage is the share of the documents that must have vectors before they are
	// ranked, so that those that have one are not preferred.
	minCoverage = 0.8
)

// Document is the text that is embedded for a tool.
type Document struct {
	ID   tool.ID
	Text string
}

// Options configure a ranker; nil means all defaults.
type Options struct {
	// Logger gets failures and recoveries of the endpoint, never texts; nil discards.
	Logger *slog.Logger
	// Dir is the directory for vectors; "" stores none.
	Dir string
	// Backoff is the first pause after a failure, doubled each time; 0 is 1 s.
	Backoff time.Duration
}

// document is a Document with its normalized text.
type document struct {
	id     tool.ID
	text   string
	digest digest
}

// digest identifies a text.
type digest [16]byte

func digestOf(text string) digest {
	sum := sha256.Sum256([]byte(text))
	return digest(sum[:16])
}

// Ranker ranks tools. All methods are safe for concurrent use.
type Ranker struct {
	log    *slog.Logger
	client *client
	files  *files // nil stores none
	// items are the ranked tools, nil while too few have vectors.
	items atomic.Pointer[[]item]
	// queries and documents have separate pauses: a query has less time.
	queryBackoff, batchBackoff backoff

	docs atomic.Pointer[[]document]
	// mismatches counts consecutive queries with vectors of another length than the documents';
	// anew says that the documents must be embedded again.
	mismatches atomic.Int32
	reembed    atomic.Bool
	changed    chan struct{}
	ctx        context.Context //nolint:containedctx // of the background work
	cancel     context.CancelFunc
	work       sync.WaitGroup
	closeOnce  sync.Once

	mu       sync.Mutex
	closed   bool
	inflight map[digest]*pendingQuery
	cached   map[digest]*list.Element // of remembered, in recent
	lru      *list.List               // newest first
}

// pendingQuery is a query in flight.
type pendingQuery struct {
	begun time.Time
	done  chan struct{}
	// v is set before done is closed; it is empty after a failure.
	v vector
}

// cachedVector is a cached vector of a query.
type cachedVector struct {
	digest digest
	v      vector
}

// New returns a ranker without documents. It sends nothing. Close it.
func New(s Settings, opts *Options) (*Ranker, error) {
	if opts == nil {
		opts = &Options{}
	}
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	r := &Ranker{
		log: opts.Logger, client: c, changed: make(chan struct{}, 1),
		inflight: map[digest]*pendingQuery{}, cached: map[digest]*list.Element{}, lru: list.New(),
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.queryBackoff.initial, r.batchBackoff.initial = opts.Backoff, opts.Backoff
	if opts.Dir != "" {
		if r.files, err = openFiles(opts.Dir, c); err != nil {
			r.log.Warn("vectors are kept in memory only", "error", err)
		}
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.work.Go(r.run)
	return r, nil
}

// Close cancels requests in flight and waits for them. It is idempotent.
func (r *Ranker) Close() error {
	var err error
	r.closeOnce.Do(func() {
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.cancel()
		r.work.Wait()
		r.client.close()
		if r.files != nil {
			err = r.files.close()
		}
	})
	return err
}

// Replace replaces the ranked documents. It returns at once: missing vectors are
// requested in the background. Documents beyond 20,000 are left out.
func (r *Ranker) Replace(docs []Document) {
	all := make([]document, min(len(docs), maxDocuments))
	for i := range all {
		text := r.client.settings.DocumentPrefix + normalizeText(docs[i].Text)
		all[i] = document{docs[i].ID, text, digestOf(text)}
	}
	r.docs.Store(&all)
	r.signalChange()
}

// signalChange signals the background goroutine that the documents have changed.
func (r *Ranker) signalChange() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// normalizeText returns the part of a text that is embedded, in valid UTF-8, with single spaces.
func normalizeText(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, " ")), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// Rank returns the tools nearest to a query, best first, at most 50, among those for
// which keep is true; a nil keep is true for all. It returns nil if the endpoint is
// down or does not respond within the timeout of the settings, or if too few
// documents have vectors yet.
func (r *Ranker) Rank(ctx context.Context, query string, keep func(tool.ID) bool) []tool.ID {
	items := r.items.Load()
	query = normalizeText(query)
	if items == nil || query == "" {
		return nil
	}
	v, ok := r.queryVector(ctx, r.client.settings.QueryPrefix+query)
	if !ok {
		return nil
	}
	return nearest(*items, v, keep)
}

// queryVector returns the vector of a query, from the cache or the endpoint.
func (r *Ranker) queryVector(ctx context.Context, query string) (vector, bool) {
	f, v := r.startQuery(query)
	if f == nil {
		return v, v.values != nil
	}
	timer := time.NewTimer(r.client.settings.Timeout)
	defer timer.Stop()
	select {
	case <-f.done:
		return f.v, f.v.values != nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return vector{}, false
}

// startQuery returns the query in flight, or the vector if it is cached, or neither.
func (r *Ranker) startQuery(query string) (*pendingQuery, vector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := digestOf(query)
	if e := r.cached[name]; e != nil {
		r.lru.MoveToFront(e)
		return nil, e.Value.(cachedVector).v
	}
	if f := r.inflight[name]; f != nil && !r.isLate(f) {
		return f, vector{}
	}
	if r.closed || r.busy() {
		return nil, vector{}
	}
	f := &pendingQuery{begun: time.Now(), done: make(chan struct{})}
	r.inflight[name] = f
	r.work.Go(func() { r.runQuery(f, name, query) })
	return f, vector{}
}

func (r *Ranker) isLate(f *pendingQuery) bool { return time.Since(f.begun) > r.client.settings.Timeout }

// busy reports whether no query should be sent now. It is called with mu held.
func (r *Ranker) busy() bool {
	if r.queryBackoff.remaining() > 0 || len(r.inflight) >= maxInflight || len(r.inflight) > 0 && r.queryBackoff.failing() {
		return true
	}
	for _, f := range r.inflight {
		if r.isLate(f) {
			return true
		}
	}
	return false
}

// runQuery requests the vector of a query.
func (r *Ranker) runQuery(f *pendingQuery, name digest, query string) {
	ctx, cancel := context.WithTimeout(r.ctx, max(maxQueryTime, r.client.settings.Timeout))
	defer cancel()
	all, err := r.client.embed(ctx, []string{query})
	if err == nil {
		err = r.checkLength(all[0])
	}
	good := err == nil
	if took := time.Since(f.begun); good && took > r.client.settings.Timeout {
		err = faultf("it takes %d ms for a query, longer than embeddings.timeout", took.Milliseconds())
	}
	if r.ctx.Err() == nil {
		r.recordOutcome(&r.queryBackoff, "queries", err) // before the next query starts
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inflight, name)
	if good {
		f.v = all[0]
		r.remember(name, f.v)
	}
	close(f.done)
}

// checkLength rejects a query's vector that has another length than the documents'. After
// maxMismatches in a row the model must have changed: all documents are embedded again.
func (r *Ranker) checkLength(v vector) error {
	items := r.items.Load()
	if items == nil || len((*items)[0].values) == len(v.values) {
		r.mismatches.Store(0)
		return nil
	}
	if r.mismatches.Add(1) == maxMismatches {
		r.mismatches.Store(0)
		r.reembed.Store(true)
		r.signalChange()
	}
	return faultf("a query's vector has %d numbers, those of the tools have %d", len(v.values), len((*items)[0].values))
}

// recordOutcome records the outcome of a request, and logs the first failure and the recovery.
func (r *Ranker) recordOutcome(rest *backoff, what string, err error) {
	switch {
	case err == nil && rest.recordSuccess():
		r.log.Info("embeddings endpoint works again", "for", what)
	case err != nil && rest.recordFailure(err):
		r.log.Warn("embeddings endpoint fails; search uses words only", "for", what, "reason", err.Error())
	}
}

// remember caches a vector. It is called with mu held.
func (r *Ranker) remember(name digest, v vector) {
	r.cached[name] = r.lru.PushFront(cachedVector{name, v})
	if r.lru.Len() > maxCached {
		delete(r.cached, r.lru.Remove(r.lru.Back()).(cachedVector).digest)
	}
}
