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
	// waiting is how many results may wait to be looked at, waitingBytes how large
	// they may be together. What comes beyond that is not learned from.
	waiting      = 64
	waitingBytes = 32 << 20
	// rest is how much longer than a look the pause after it is, so that learning
	// takes little from those who work; maxRest bounds it.
	rest    = 4
	maxRest = time.Second
	// plenty is how many results of a definition are all looked at; of the others
	// it is one in seldom.
	plenty, seldom = 100, 16
	// notifyAfter and saveAfter are how long changes are gathered before they are
	// told, and kept.
	notifyAfter = 200 * time.Millisecond
	saveAfter   = 5 * time.Second
)

// Keeper keeps what was learned, beyond this process. It is safe for concurrent use.
type Keeper interface {
	// Load returns what is kept of an upstream. It is not nil, after an error neither.
	Load(upstream string) (Known, error)
	// Merge adds what was learned to what is kept, and returns all of it. An error
	// says that nothing was added.
	Merge(upstream string, learned Known) (Known, error)
}

// Options configure a store; nil means all defaults.
type Options struct {
	// Logger gets what cannot be kept; nil discards.
	Logger *slog.Logger
	// OnChange is called with the upstream of tools with a changed Observed, from the
	// store's goroutine, some time after. It must not block. nil: no one does.
	OnChange func(upstream string)
}

// Store learns. All methods are safe for concurrent use.
type Store struct {
	log      *slog.Logger
	onChange func(upstream string)
	keeper   Keeper // nil keeps nothing
	results  chan sample
	bytes    atomic.Int64 // of what is in results
	quit     chan struct{}
	close    func()
	work     sync.WaitGroup

	mu     sync.Mutex
	topics map[string]*topic // by upstream

	loading sync.Mutex // held while something kept is loaded
}

// sample is a result to be looked at.
type sample struct {
	upstream, digest string
	result           tool.Result
	weight           int
}

// topic is what is known of one upstream.
type topic struct {
	tools map[string]*subject // by digest
	// fresh is what the keeper does not have.
	fresh Known
}

// subject is one definition of a tool.
type subject struct {
	entry    Entry
	offered  int            // results that were there to be looked at
	observed *tool.Observed // nil while Count is 0
}

// New starts a store that has what keeper has; nil keeps nothing. Close it.
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

// Close looks at what waits, keeps what was learned, and ends. It is idempotent.
func (s *Store) Close() { s.close() }

// Learn takes a result of a tool, of the definition with this digest, to look at
// it later. It never waits: when there is much to do, the result is passed over.
// The result must not be changed any more.
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

// Observed returns what is known of the results of a definition, nil for
// nothing. It is not changed afterwards. The first question about an upstream
// reads what is kept of it.
func (s *Store) Observed(upstream, digest string) *tool.Observed {
	t := s.topic(upstream)
	s.mu.Lock()
	defer s.mu.Unlock()
	known := t.tools[digest]
	if known == nil {
		return nil
	}
	if day := today(); known.entry.Day < day { // it is not gone
		known.entry.Day = day
		t.note(digest, Entry{Day: day})
	}
	return known.observed
}

// Has reports whether anything is known of an upstream, which is quicker to ask.
func (s *Store) Has(upstream string) bool {
	t := s.topic(upstream)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(t.tools) > 0
}

// topic returns that of an upstream, with what is kept of it.
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
	if t = s.topics[upstream]; t == nil { // nobody was quicker
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
		s.log.Warn("kept shapes are not used", "upstream", upstream, "reason", err.Error())
	}
	return known
}

// adopt takes what the keeper has, and reports whether it shows. What it has lost
// it is to get again.
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

// set gives the subject another entry, and reports whether that shows.
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

// rounded is the largest of 1, 2, 5, 10, 20, 50 ... that n reaches.
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

// note remembers for the keeper.
func (t *topic) note(digest string, e Entry) { t.fresh[digest] = join(t.fresh[digest], e) }

// follow looks at results, tells of changes and keeps them, until Close.
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

// orIn is the timer, or a new one if there is none.
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

// drain looks at what waits.
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

// look learns from a result, and reports whether that shows.
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

// wanted reports whether a result of the definition is to be looked at.
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

// save hands the keeper what it does not have, and learns what it has from others.
func (s *Store) save() {
	if s.keeper == nil {
		return
	}
	var known Known
	var err error
	for upstream, fresh := range s.takeFresh() {
		if !errors.Is(err, filelock.ErrBusy) { // else none of them waits again
			known, err = s.keeper.Merge(upstream, fresh)
		}
		if err != nil {
			s.log.Warn("observed shapes cannot be kept", "upstream", upstream, "error", err.Error())
			known = nil
		}
		s.mu.Lock()
		t := s.topics[upstream]
		if err != nil { // with the next
			t.fresh.Join(fresh)
		}
		changed := t.adopt(known)
		s.mu.Unlock()
		if changed {
			s.onChange(upstream)
		}
	}
}

// takeFresh empties what the keeper does not have.
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
