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
	// maxFlights is how many queries are asked at once, maxFlight how long one may
	// take: no search waits for it that long, but the next one has it.
	maxFlights = 4
	maxFlight  = 10 * time.Second
	// maxRemembered is how many queries are remembered.
	maxRemembered = 256
	// maxOdd is how often vectors of another length are refused before they are believed.
	maxOdd = 3
	// enough is the share of the documents that must have vectors before they rank:
	// else those that have would be favoured.
	enough = 0.8
)

// Document is the text that is embedded for a tool.
type Document struct {
	ID   tool.ID
	Text string
}

// Options configure a ranker; nil means all defaults.
type Options struct {
	// Logger gets when the endpoint fails and when it works again, never texts; nil discards.
	Logger *slog.Logger
	// Dir is where vectors are kept; "" keeps none.
	Dir string
	// Rest is how long the endpoint is left alone after a failure, doubled each time; 0 is 1 s.
	Rest time.Duration
}

// document is a Document as it is worked on.
type document struct {
	id   tool.ID
	text string
	name digest
}

// digest names a text.
type digest [16]byte

func digestOf(text string) digest {
	sum := sha256.Sum256([]byte(text))
	return digest(sum[:16])
}

// Ranker ranks tools. All methods are safe for concurrent use.
type Ranker struct {
	log    *slog.Logger
	client *client
	files  *files // nil keeps none
	// items are what is ranked, nil while too few have vectors.
	items atomic.Pointer[[]item]
	// queries and documents are left alone apart: a query has less time.
	asking, embedding rest

	docs atomic.Pointer[[]document]
	// odd counts consecutive queries with vectors of another length than the documents';
	// anew says that these must be embedded again.
	odd     atomic.Int32
	anew    atomic.Bool
	changed chan struct{}
	life    context.Context //nolint:containedctx // the life of what runs in the background
	end     context.CancelFunc
	work    sync.WaitGroup
	closing sync.Once

	mu      sync.Mutex
	closed  bool
	flights map[digest]*flight
	known   map[digest]*list.Element // of remembered, in recent
	recent  *list.List               // newest first
}

// flight is a query that is being asked.
type flight struct {
	begun time.Time
	done  chan struct{}
	// v is there once done is closed, if there is any.
	v vector
}

// remembered is a query's vector.
type remembered struct {
	digest digest
	v      vector
}

// New opens a ranker that has no documents. Nothing is sent. Close it.
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
			r.log.Warn("vectors are not kept", "error", err)
		}
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.work.Go(r.follow)
	return r, nil
}

// Close ends what is under way and waits for it. It is idempotent.
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

// Replace makes docs what is ranked. It returns at once: what has no vector yet
// gets one in the background. Of more than 20,000 documents the rest is left out.
func (r *Ranker) Replace(docs []Document) {
	all := make([]document, min(len(docs), maxDocuments))
	for i := range all {
		text := cut(docs[i].Text)
		all[i] = document{docs[i].ID, text, digestOf(text)}
	}
	r.docs.Store(&all)
	r.touch()
}

// touch has the background look at the documents.
func (r *Ranker) touch() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// cut is as much of a text as is embedded, in valid UTF-8 and without what does not show.
func cut(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, " ")), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// Rank returns the tools nearest to a query, best first, at most 50, of those that
// keep holds for; a nil keep holds for all. It returns nil where the endpoint is
// down, or does not answer within the time of the settings, or where most
// documents have no vectors yet.
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

// vector returns that of a query, remembered or asked for.
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

// flight returns what is to be waited for, or the vector if it is remembered, or neither.
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

// busy reports whether no query should be asked now. It is called with mu held.
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

// fly asks for the vector of a query.
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
		r.note(&r.asking, "queries", err) // before anybody asks the next one
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

// fits refuses a query's vector that has another length than the documents'. After
// some in a row another model has taken the name: all is embedded again.
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

// note has the endpoint left alone after a failure, and logs the first and the last of a row.
func (r *Ranker) note(rest *rest, what string, err error) {
	switch {
	case err == nil && rest.worked():
		r.log.Info("embeddings endpoint works again", "for", what)
	case err != nil && rest.failed(err):
		r.log.Warn("embeddings endpoint fails; search goes by words alone", "for", what, "reason", err.Error())
	}
}

// remember is called with mu held.
func (r *Ranker) remember(name digest, v vector) {
	r.known[name] = r.recent.PushFront(remembered{name, v})
	if r.recent.Len() > maxRemembered {
		delete(r.known, r.recent.Remove(r.recent.Back()).(remembered).digest)
	}
}
