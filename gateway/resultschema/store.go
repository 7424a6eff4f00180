package resultschema

import (
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/filelock"
	"sallyport/internal/jsontype"
	"sallyport/internal/tool"
)

const (
	// maxWaiting is how many results may be queued, maxWaitingBytes their total size. Results
	// beyond that are dropped.
	maxWaiting      = 64
	maxWaitingBytes = 32 << 20
	// pauseFactor is the ratio of the pause after a result to the time spent on it, which limits
	// the CPU share of learning; maxPause bounds the pause.
	pauseFactor = 4
	maxPause    = time.Second
	// alwaysSampled is how many results of a definition are all used; of further ones, one in
	// seldom is.
	alwaysSampled, sampleInterval = 100, 16
	// notifyDelay and saveDelay are how long changes are collected before OnChange is
	// called, and before they are saved.
	notifyDelay = 200 * time.Millisecond
	saveDelay   = 5 * time.Second
)

// Storage stores entries persistently. It is safe for concurrent use.
type Storage interface {
	// Load returns the stored entries of an upstream. They are never nil, even after an error.
	Load(upstream string) (Entries, error)
	// Merge adds learned to the stored entries, and returns all. After an error nothing
	// was added.
	Merge(upstream string, learned Entries) (Entries, error)
}

// Options configure a store; nil means all defaults.
type Options struct {
	// Logger gets failures of the storage; nil discards.
	Logger *slog.Logger
	// OnChange is called with an upstream after shapes of its tools have changed, from the
	// store's goroutine, with a delay. It must not block. nil is not called.
	OnChange func(upstream string)
}

// Store learns the shapes of results. All methods are safe for concurrent use.
type Store struct {
	log       *slog.Logger
	onChange  func(upstream string)
	storage   Storage // nil stores nothing
	results   chan sample
	bytes     atomic.Int64 // total size of queued results
	refreshes chan string
	quit      chan struct{}
	close     func()
	work      sync.WaitGroup

	mu        sync.Mutex
	upstreams map[string]*upstreamShapes // by upstream

	loadMu sync.Mutex // held while stored entries are loaded
}

// sample is a queued result.
type sample struct {
	upstream, digest string
	result           tool.Result
	size             int
}

// upstreamShapes has the shapes of one upstream.
type upstreamShapes struct {
	tools map[string]*definition // by digest
	// unsaved has the unsaved entries.
	unsaved Entries
}

// definition has the shape of one definition of a tool.
type definition struct {
	entry    Entry
	results  int            // number of results seen
	observed *tool.Observed // nil while Count is 0
}

// New starts a store on a keeper; nil keeps shapes in memory only. Close it.
func New(keeper Storage, opts *Options) *Store {
	s := &Store{
		log: slog.New(slog.DiscardHandler), onChange: func(string) {}, storage: keeper,
		results: make(chan sample, maxWaiting), refreshes: make(chan string), quit: make(chan struct{}), upstreams: map[string]*upstreamShapes{},
	}
	if opts != nil && opts.Logger != nil {
		s.log = opts.Logger
	}
	if opts != nil && opts.OnChange != nil {
		s.onChange = opts.OnChange
	}
	s.close = sync.OnceFunc(func() { close(s.quit); s.work.Wait() })
	s.work.Go(s.run)
	return s
}

// Close processes queued results and saves what was learned. It is idempotent.
func (s *Store) Close() { s.close() }

// Learn queues a result of the tool definition with this digest. It never blocks: if
// the queue is full, the result is dropped. The result must not be changed
// afterwards.
func (s *Store) Learn(upstream, digest string, result tool.Result) {
	next := sample{upstream, digest, result, resultSize(result)}
	if s.bytes.Add(int64(next.size)) <= maxWaitingBytes {
		select {
		case s.results <- next:
			return
		default:
		}
	}
	s.bytes.Add(-int64(next.size))
}

// Lookup returns the observed shape of the results of a definition, nil if there is
// none. It is immutable. The first call for an upstream loads its stored
// entries.
func (s *Store) Lookup(upstream, digest string) *tool.Observed {
	t := s.upstreamShapes(upstream)
	s.mu.Lock()
	defer s.mu.Unlock()
	known := t.tools[digest]
	if known == nil {
		return nil
	}
	if day := today(); known.entry.Day < day { // keeps the entry from expiring
		known.entry.Day = day
		t.addUnsaved(digest, Entry{Day: day})
	}
	return known.observed
}

// Refresh merges, some time later, what other processes have stored of an upstream, if it was loaded.
func (s *Store) Refresh(upstream string) {
	select {
	case s.refreshes <- upstream:
	case <-s.quit:
	}
}

// refresh merges the stored entries of an upstream.
func (s *Store) refresh(upstream string) {
	s.mu.Lock()
	t := s.upstreams[upstream]
	s.mu.Unlock()
	if t == nil {
		return
	}
	known := s.load(upstream)
	s.mu.Lock()
	changed := t.mergeStored(known)
	s.mu.Unlock()
	if changed {
		s.onChange(upstream)
	}
}

// Has reports whether any shape of an upstream is known. It is faster than Observed.
func (s *Store) Has(upstream string) bool {
	t := s.upstreamShapes(upstream)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(t.tools) > 0
}

// upstreamShapes returns the topic of an upstream, with its stored entries.
func (s *Store) upstreamShapes(upstream string) *upstreamShapes {
	s.mu.Lock()
	t := s.upstreams[upstream]
	s.mu.Unlock()
	if t != nil {
		return t
	}
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	known := s.load(upstream)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t = s.upstreams[upstream]; t == nil { // no other goroutine was faster
		t = &upstreamShapes{tools: map[string]*definition{}, unsaved: Entries{}}
		t.mergeStored(known)
		s.upstreams[upstream] = t
	}
	return t
}

func (s *Store) load(upstream string) Entries {
	if s.storage == nil {
		return nil
	}
	known, err := s.storage.Load(upstream)
	if err != nil {
		s.log.Warn("stored shapes are ignored", "upstream", upstream, "reason", err.Error())
	}
	return known
}

// mergeStored merges the stored entries, and reports whether an observed shape has changed.
// Counts that the storage has lost are saved again.
func (t *upstreamShapes) mergeStored(known Entries) (changed bool) {
	for digest, e := range known {
		if fresh, ok := t.unsaved[digest]; ok {
			e = mergeEntry(e, fresh)
		}
		sub := t.tools[digest]
		if sub == nil {
			sub = &definition{}
			t.tools[digest] = sub
		}
		if lost := sub.entry.Count - e.Count; lost > 0 {
			again := Entry{Shape: sub.entry.Shape, Count: lost, Day: sub.entry.Day}
			t.addUnsaved(digest, again)
			e = mergeEntry(e, again)
		}
		changed = sub.set(e) || changed
	}
	return changed
}

// set replaces the entry, and reports whether the observed shape has changed.
func (sub *definition) set(e Entry) bool {
	sub.entry = e
	next := newObserved(e)
	if reflect.DeepEqual(sub.observed, next) {
		return false
	}
	sub.observed = next
	return true
}

func newObserved(e Entry) *tool.Observed {
	if e.Count == 0 {
		return nil
	}
	return &tool.Observed{Shape: e.Shape, Count: roundDown(e.Count)}
}

// roundDown returns the largest of 1, 2, 5, 10, 20, 50 ... that is at most n.
func roundDown(n int) int {
	last := 1
	for step := 1; ; step *= 10 {
		for _, next := range []int{step, 2 * step, 5 * step} {
			if next > n {
				return last
			}
			last = next
		}
	}
}

// addUnsaved adds an unsaved entry.
func (t *upstreamShapes) addUnsaved(digest string, e Entry) {
	t.unsaved[digest] = mergeEntry(t.unsaved[digest], e)
}

// run processes results, reports changes and saves them, until Close.
func (s *Store) run() {
	changed := map[string]bool{}
	var notify, save <-chan time.Time
	for {
		select {
		case next := <-s.results:
			start := time.Now()
			if s.process(next) {
				changed[next.upstream] = true
				notify = startTimer(notify, notifyDelay)
			}
			save = startTimer(save, saveDelay)
			s.pause(min(pauseFactor*time.Since(start), maxPause))
		case <-notify:
			s.notify(changed)
			notify = nil
		case <-save:
			s.save()
			save = nil
		case upstream := <-s.refreshes: // not while it saves: what is being saved would be counted twice
			s.refresh(upstream)
		case <-s.quit:
			s.drain()
			s.save()
			return
		}
	}
}

// startTimer returns timer, or a new one if it is nil.
func startTimer(timer <-chan time.Time, after time.Duration) <-chan time.Time {
	if timer == nil {
		return time.After(after)
	}
	return timer
}

func (s *Store) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.quit:
	}
}

func (s *Store) notify(changed map[string]bool) {
	for _, upstream := range slices.Sorted(maps.Keys(changed)) {
		s.onChange(upstream)
	}
	clear(changed)
}

// drain processes queued results.
func (s *Store) drain() {
	for {
		select {
		case next := <-s.results:
			s.process(next)
		default:
			return
		}
	}
}

// process processes a result, and reports whether the observed shape has changed.
func (s *Store) process(next sample) bool {
	defer s.bytes.Add(-int64(next.size))
	t := s.upstreamShapes(next.upstream)
	if !s.shouldSample(t, next.digest) {
		return false
	}
	seen, err := ShapeOf(next.result.Value())
	if err != nil {
		return false
	}
	return s.learn(t, next.digest, seen)
}

// shouldSample counts a result of the definition, and reports whether to use it.
func (s *Store) shouldSample(t *upstreamShapes, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := t.tools[digest]
	if sub == nil {
		if len(t.tools) >= maxDefinitions {
			return false
		}
		sub = &definition{}
		t.tools[digest] = sub
	}
	sub.results++
	return sub.entry.Count < alwaysSampled || sub.results%sampleInterval == 0
}

func (s *Store) learn(t *upstreamShapes, digest string, seen jsontype.Shape) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := Entry{Shape: seen, Count: 1, Day: today()}
	t.addUnsaved(digest, one)
	sub := t.tools[digest]
	return sub.set(mergeEntry(sub.entry, one))
}

// save merges unsaved entries into the storage, and takes over those of other processes.
func (s *Store) save() {
	if s.storage == nil {
		return
	}
	var known Entries
	var err error
	for upstream, fresh := range s.takeUnsaved() {
		if !errors.Is(err, filelock.ErrBusy) { // wait for the lock once only
			known, err = s.storage.Merge(upstream, fresh)
		}
		if err != nil {
			s.log.Warn("save observed shapes", "upstream", upstream, "error", err.Error())
			known = nil
		}
		s.mu.Lock()
		t := s.upstreams[upstream]
		if err != nil { // the next save retries
			t.unsaved.Merge(fresh)
		}
		changed := t.mergeStored(known)
		s.mu.Unlock()
		if changed {
			s.onChange(upstream)
		}
	}
}

// takeUnsaved removes and returns the unsaved entries, by upstream.
func (s *Store) takeUnsaved() map[string]Entries {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Entries{}
	for upstream, t := range s.upstreams {
		if len(t.unsaved) > 0 {
			all[upstream], t.unsaved = t.unsaved, Entries{}
		}
	}
	return all
}
