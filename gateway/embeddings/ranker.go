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
	// maxFlights is how many queries are in flight at once, maxFlight how long one may
	// take: a search does not wait that long, but a later one uses the vector.
	maxFlights = 4
	maxFlight  = 10 * time.Second
	// maxRemembered is how many queries are cached.
	maxRemembered = 256
	// maxOdd is how often vectors of another length are rejected before they are accepted.
	maxOdd = 3
	// enough is the share of the documents that must have vectors before they are
	// ranked, so that those that have one are not preferred.
	enough = 0.8
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
	// Rest is the first pause after a failure, doubled each time; 0 is 1 s.
	Rest time.Duration
}

// document is a Document with its normalized text.
type document struct {
	id   tool.ID
	text string
	name digest
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
	asking, embedding rest

	docs atomic.Pointer[[]document]
	// odd counts consecutive queries with vectors of another length than the documents';
	// anew says that the documents must be embedded again.
	odd     atomic.Int32
	anew    atomic.Bool
	changed chan struct{}
	life    context.Context //nolint:containedctx // of the background work
	end     context.CancelFunc
	work    sync.WaitGroup
	closing sync.Once

	mu      sync.Mutex
	closed  bool
	flights map[digest]*flight
	known   map[digest]*list.Element // of remembered, in recent
	recent  *list.List               // newest first
}

// flight is a query in flight.
type flight struct {
	begun time.Time
	done  chan struct{}
	// v is set before done is closed; it is empty after a failure.
	v vector
}

// remembered is a cached vector of a query.
type remembered struct {
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
		flights: map[digest]*flight{}, known: map[digest]*list.Element{}, recent: list.New(),
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.asking.first, r.embedding.first = opts.Rest, opts.Rest
	if opts.Dir != "" {
		if r.files, err = openFiles(opts.Dir, c); err != nil {
			r.log.Warn("vectors are kept in memory only", "error", err)
		}
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.work.Go(r.follow)
	return r, nil
}

// Close cancels requests in flight and waits for them. It is idempotent.
func (r *Ranker) Close() error {
	var err error
	r.closing.Do(func() {
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.end()
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
		text := cut(docs[i].Text)
		all[i] = document{docs[i].ID, text, digestOf(text)}
	}
	r.docs.Store(&all)
	r.touch()
}

// touch signals the background goroutine that the documents have changed.
func (r *Ranker) touch() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// cut returns the part of a text that is embedded, in valid UTF-8, with single spaces.
func cut(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, " ")), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// Rank returns the tools nearest to a query, best first, at most 50, among those for
// which keep is true; a nil keep is true for all. It returns nil if the endpoint is
// down or does not respond within the timeout of the settings, or if too few
// documents have vectors yet.
func (r *Ranker) Rank(ctx context.Context, query string, keep func(tool.ID) bool) []tool.ID {
	items := r.items.Load()
	query = cut(query)
	if items == nil || query == "" {
		return nil
	}
	v, ok := r.vector(ctx, query)
	if !ok {
		return nil
	}
	return nearest(*items, v, keep)
}

// vector returns the vector of a query, from the cache or the endpoint.
func (r *Ranker) vector(ctx context.Context, query string) (vector, bool) {
	f, v := r.flight(query)
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

// flight returns the query in flight, or the vector if it is cached, or neither.
func (r *Ranker) flight(query string) (*flight, vector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := digestOf(query)
	if e := r.known[name]; e != nil {
		r.recent.MoveToFront(e)
		return nil, e.Value.(remembered).v
	}
	if f := r.flights[name]; f != nil && !r.late(f) {
		return f, vector{}
	}
	if r.closed || r.busy() {
		return nil, vector{}
	}
	f := &flight{begun: time.Now(), done: make(chan struct{})}
	r.flights[name] = f
	r.work.Go(func() { r.fly(f, name, query) })
	return f, vector{}
}

func (r *Ranker) late(f *flight) bool { return time.Since(f.begun) > r.client.settings.Timeout }

// busy reports whether no query should be sent now. It is called with mu held.
func (r *Ranker) busy() bool {
	if r.asking.over() > 0 || len(r.flights) >= maxFlights || len(r.flights) > 0 && r.asking.wary() {
		return true
	}
	for _, f := range r.flights {
		if r.late(f) {
			return true
		}
	}
	return false
}

// fly requests the vector of a query.
func (r *Ranker) fly(f *flight, name digest, query string) {
	ctx, cancel := context.WithTimeout(r.life, max(maxFlight, r.client.settings.Timeout))
	defer cancel()
	all, err := r.client.embed(ctx, []string{query})
	if err == nil {
		err = r.fits(all[0])
	}
	good := err == nil
	if took := time.Since(f.begun); good && took > r.client.settings.Timeout {
		err = faultf("it takes %d ms for a query, longer than embeddings.timeout", took.Milliseconds())
	}
	if r.life.Err() == nil {
		r.note(&r.asking, "queries", err) // before the next query starts
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flights, name)
	if good {
		f.v = all[0]
		r.remember(name, f.v)
	}
	close(f.done)
}

// fits rejects a query's vector that has another length than the documents'. After
// maxOdd in a row the model must have changed: all documents are embedded again.
func (r *Ranker) fits(v vector) error {
	items := r.items.Load()
	if items == nil || len((*items)[0].values) == len(v.values) {
		r.odd.Store(0)
		return nil
	}
	if r.odd.Add(1) == maxOdd {
		r.odd.Store(0)
		r.anew.Store(true)
		r.touch()
	}
	return faultf("a query's vector has %d numbers, those of the tools have %d", len(v.values), len((*items)[0].values))
}

// note records the outcome of a request, and logs the first failure and the recovery.
func (r *Ranker) note(rest *rest, what string, err error) {
	switch {
	case err == nil && rest.worked():
		r.log.Info("embeddings endpoint works again", "for", what)
	case err != nil && rest.failed(err):
		r.log.Warn("embeddings endpoint fails; search uses words only", "for", what, "reason", err.Error())
	}
}

// remember caches a vector. It is called with mu held.
func (r *Ranker) remember(name digest, v vector) {
	r.known[name] = r.recent.PushFront(remembered{name, v})
	if r.recent.Len() > maxRemembered {
		delete(r.known, r.recent.Remove(r.recent.Back()).(remembered).digest)
	}
}
