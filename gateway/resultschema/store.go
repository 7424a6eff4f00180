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
	// waiting is how many results may be queued, waitingBytes their total size. Results
	// beyond that are dropped.
	waiting      = 64
	waitingBytes = 32 << 20
	// rest is the ratio of the pause after a result to the time spent on it, which limits
	// the CPU share of learning; maxRest bounds the pause.
	rest    = 4
	maxRest = time.Second
	// plenty is how many results of a definition are all used; of further ones, one in
	// seldom is.
	plenty, seldom = 100, 16
	// notifyAfter and saveAfter are how long changes are collected before OnChange is
	// called, and before they are saved.
	notifyAfter = 200 * time.Millisecond
	saveAfter   = 5 * time.Second
)

// Keeper stores entries persistently. It is safe for concurrent use.
type Keeper interface {
	// Load returns the stored entries of an upstream. They are never nil, even after an error.
	Load(upstream string) (Known, error)
	// Merge adds learned to the stored entries, and returns all. After an error nothing
	// was added.
	Merge(upstream string, learned Known) (Known, error)
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
	log      *slog.Logger
	onChange func(upstream string)
	keeper   Keeper // nil stores nothing
	results  chan sample
	bytes    atomic.Int64 // total size of queued results
	quit     chan struct{}
	close    func()
	work     sync.WaitGroup

	mu     sync.Mutex
	topics map[string]*topic // by upstream

	loading sync.Mutex // held while stored entries are loaded
}

// sample is a queued result.
type sample struct {
	upstream, digest string
	result           tool.Result
	weight           int
}

// topic has the shapes of one upstream.
type topic struct {
	tools map[string]*subject // by digest
	// fresh has the unsaved entries.
	fresh Known
}

// subject has the shape of one definition of a tool.
type subject struct {
	entry    Entry
	offered  int            // number of results seen
	observed *tool.Observed // nil while Count is 0
}

// New starts a store on a keeper; nil keeps shapes in memory only. Close it.
func New(keeper Keeper, opts *Options) *Store {
	s := &Store{
		log: slog.New(slog.DiscardHandler), onChange: func(string) {}, keeper: keeper,
		results: make(chan sample, waiting), quit: make(chan struct{}), topics: map[string]*topic{},
	}
	if opts != nil && opts.Logger != nil {
		s.log = opts.Logger
	}
	if opts != nil && opts.OnChange != nil {
		s.onChange = opts.OnChange
	}
	s.close = sync.OnceFunc(func() { close(s.quit); s.work.Wait() })
	s.work.Go(s.follow)
	return s
}

// Close processes queued results and saves what was learned. It is idempotent.
func (s *Store) Close() { s.close() }

// Learn queues a result of the tool definition with this digest. It never blocks: if
// the queue is full, the result is dropped. The result must not be changed
// afterwards.
func (s *Store) Learn(upstream, digest string, result tool.Result) {
	next := sample{upstream, digest, result, weight(result)}
	if s.bytes.Add(int64(next.weight)) <= waitingBytes {
		select {
		case s.results <- next:
			return
		default:
		}
	}
	s.bytes.Add(-int64(next.weight))
}

// Observed returns the observed shape of the results of a definition, nil if there is
// none. It is immutable. The first call for an upstream loads its stored
// entries.
func (s *Store) Observed(upstream, digest string) *tool.Observed {
	t := s.topic(upstream)
	s.mu.Lock()
	defer s.mu.Unlock()
	known := t.tools[digest]
	if known == nil {
		return nil
	}
	if day := today(); known.entry.Day < day { // keeps the entry from expiring
		known.entry.Day = day
		t.note(digest, Entry{Day: day})
	}
	return known.observed
}

// Has reports whether any shape of an upstream is known. It is faster than Observed.
func (s *Store) Has(upstream string) bool {
	t := s.topic(upstream)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(t.tools) > 0
}

// topic returns the topic of an upstream, with its stored entries.
func (s *Store) topic(upstream string) *topic {
	s.mu.Lock()
	t := s.topics[upstream]
	s.mu.Unlock()
	if t != nil {
		return t
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	known := s.load(upstream)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t = s.topics[upstream]; t == nil { // no other goroutine was faster
		t = &topic{tools: map[string]*subject{}, fresh: Known{}}
		t.adopt(known)
		s.topics[upstream] = t
	}
	return t
}

func (s *Store) load(upstream string) Known {
	if s.keeper == nil {
		return nil
	}
	known, err := s.keeper.Load(upstream)
	if err != nil {
		s.log.Warn("stored shapes are ignored", "upstream", upstream, "reason", err.Error())
	}
	return known
}

// adopt merges the stored entries, and reports whether an observed shape has changed.
// Counts that the storage has lost are saved again.
func (t *topic) adopt(known Known) (changed bool) {
	for digest, e := range known {
		if fresh, ok := t.fresh[digest]; ok {
			e = join(e, fresh)
		}
		sub := t.tools[digest]
		if sub == nil {
			sub = &subject{}
			t.tools[digest] = sub
		}
		if lost := sub.entry.Count - e.Count; lost > 0 {
			again := Entry{Shape: sub.entry.Shape, Count: lost, Day: sub.entry.Day}
			t.note(digest, again)
			e = join(e, again)
		}
		changed = sub.set(e) || changed
	}
	return changed
}

// set replaces the entry, and reports whether the observed shape has changed.
func (sub *subject) set(e Entry) bool {
	sub.entry = e
	next := observed(e)
	if reflect.DeepEqual(sub.observed, next) {
		return false
	}
	sub.observed = next
	return true
}

func observed(e Entry) *tool.Observed {
	if e.Count == 0 {
		return nil
	}
	return &tool.Observed{Shape: e.Shape, Count: rounded(e.Count)}
}

// rounded returns the largest of 1, 2, 5, 10, 20, 50 ... that is at most n.
func rounded(n int) int {
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

// note adds an unsaved entry.
func (t *topic) note(digest string, e Entry) { t.fresh[digest] = join(t.fresh[digest], e) }

// follow processes results, reports changes and saves them, until Close.
func (s *Store) follow() {
	changed := map[string]bool{}
	var notify, save <-chan time.Time
	for {
		select {
		case next := <-s.results:
			start := time.Now()
			if s.look(next) {
				changed[next.upstream] = true
				notify = orIn(notify, notifyAfter)
			}
			save = orIn(save, saveAfter)
			s.pause(min(rest*time.Since(start), maxRest))
		case <-notify:
			s.tell(changed)
			notify = nil
		case <-save:
			s.save()
			save = nil
		case <-s.quit:
			s.drain()
			s.save()
			return
		}
	}
}

// orIn returns timer, or a new one if it is nil.
func orIn(timer <-chan time.Time, after time.Duration) <-chan time.Time {
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

func (s *Store) tell(changed map[string]bool) {
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
			s.look(next)
		default:
			return
		}
	}
}

// look processes a result, and reports whether the observed shape has changed.
func (s *Store) look(next sample) bool {
	defer s.bytes.Add(-int64(next.weight))
	t := s.topic(next.upstream)
	if !s.wanted(t, next.digest) {
		return false
	}
	seen, err := shapeOf(next.result.Value())
	if err != nil {
		return false
	}
	return s.learn(t, next.digest, seen)
}

// wanted counts a result of the definition, and reports whether to use it.
func (s *Store) wanted(t *topic, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := t.tools[digest]
	if sub == nil {
		if len(t.tools) >= maxKnown {
			return false
		}
		sub = &subject{}
		t.tools[digest] = sub
	}
	sub.offered++
	return sub.entry.Count < plenty || sub.offered%seldom == 0
}

func (s *Store) learn(t *topic, digest string, seen jsontype.Shape) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := Entry{Shape: seen, Count: 1, Day: today()}
	t.note(digest, one)
	sub := t.tools[digest]
	return sub.set(join(sub.entry, one))
}

// save merges unsaved entries into the storage, and takes over those of other processes.
func (s *Store) save() {
	if s.keeper == nil {
		return
	}
	var known Known
	var err error
	for upstream, fresh := range s.takeFresh() {
		if !errors.Is(err, filelock.ErrBusy) { // wait for the lock once only
			known, err = s.keeper.Merge(upstream, fresh)
		}
		if err != nil {
			s.log.Warn("save observed shapes", "upstream", upstream, "error", err.Error())
			known = nil
		}
		s.mu.Lock()
		t := s.topics[upstream]
		if err != nil { // the next save retries
			t.fresh.Join(fresh)
		}
		changed := t.adopt(known)
		s.mu.Unlock()
		if changed {
			s.onChange(upstream)
		}
	}
}

// takeFresh removes and returns the unsaved entries, by upstream.
func (s *Store) takeFresh() map[string]Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Known{}
	for upstream, t := range s.topics {
		if len(t.fresh) > 0 {
			all[upstream], t.fresh = t.fresh, Known{}
		}
	}
	return all
}
