package feedback

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sallyport/internal/tool"
)

const (
	// saveAfter is how long changes are collected before they are saved.
	saveAfter = 5 * time.Second
	// maxBooks and maxTrails are how many principals, and sessions, are in memory.
	maxBooks  = 32
	maxTrails = 256
)

// Keeper stores pairs persistently. It is safe for concurrent use.
type Keeper interface {
	// Load returns the stored pairs of a principal. They are never nil, even after an error.
	Load(principal string) (Known, error)
	// Merge adds learned to the stored pairs, and returns all pairs. known has the stored
	// pairs as last loaded, in case the storage has lost them. After an error nothing was
	// added.
	Merge(principal string, known, learned Known) (Known, error)
}

// Options configure a store; nil means all defaults.
type Options struct {
	// Logger gets failures of the storage; nil discards.
	Logger *slog.Logger
}

// Who identifies a caller: searches and calls are matched within a session, and pairs
// belong to the principal.
type Who struct{ Principal, Session string }

// Store learns which tools are called after which searches. All methods are safe for concurrent use.
type Store struct {
	log    *slog.Logger
	keeper Keeper // nil stores nothing
	dirty  chan struct{}
	quit   chan struct{}
	close  func()
	work   sync.WaitGroup

	mu     sync.Mutex
	books  map[string]*book // by principal
	trails map[Who]*trail

	loading sync.Mutex // held while stored pairs are loaded
}

// New starts a store on a keeper; nil keeps pairs in memory only. Close it.
func New(keeper Keeper, opts *Options) *Store {
	s := &Store{
		log: slog.New(slog.DiscardHandler), keeper: keeper, dirty: make(chan struct{}, 1), quit: make(chan struct{}),
		books: map[string]*book{}, trails: map[Who]*trail{},
	}
	if opts != nil && opts.Logger != nil {
		s.log = opts.Logger
	}
	s.close = sync.OnceFunc(func() { close(s.quit); s.work.Wait() })
	s.work.Go(s.follow)
	return s
}

// Close saves what was learned. It is idempotent.
func (s *Store) Close() { s.close() }

// Searched records a search for words that returned these tools.
func (s *Store) Searched(who Who, words map[string]float64, shown []tool.ID) {
	query := kept(words)
	if len(query) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.expire(now)
	t := s.trails[who]
	if t == nil {
		t = &trail{}
		s.trails[who] = t
	}
	t.seen = now
	s.credit(who.Principal, t.search(query, shown, now))
	s.dropTrail()
}

// Called records a successful call of a tool. execution is the id of the
// program that did it, "" for none; digest is that of the tool's definition.
func (s *Store) Called(who Who, execution string, id tool.ID, digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.expire(now)
	t := s.trails[who]
	if t == nil {
		return // nothing was searched for
	}
	t.seen = now
	s.credit(who.Principal, t.call(execution, id, digest, now))
}

// Favour returns how much each tool should be boosted for a query, above 0 and up to 1.
// current returns the digest of a tool's definition, "" if there is no such tool: pairs
// of another definition do not count.
func (s *Store) Favour(principal string, words map[string]float64, current func(tool.ID) string) map[tool.ID]float64 {
	query := kept(words)
	if len(query) == 0 {
		return nil
	}
	b := s.book(principal)
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.favour(query, current)
}

// expire ends expired searches. It is called with mu held.
func (s *Store) expire(now time.Time) {
	for who, t := range s.trails {
		s.credit(who.Principal, t.expire(now))
		if len(t.searches) == 0 {
			delete(s.trails, who)
		}
	}
}

// dropTrail evicts the least recently used trail if there are too many.
func (s *Store) dropTrail() {
	if len(s.trails) <= maxTrails {
		return
	}
	var oldest Who
	var seen time.Time
	for who, t := range s.trails {
		if seen.IsZero() || t.seen.Before(seen) {
			oldest, seen = who, t.seen
		}
	}
	delete(s.trails, oldest)
}

// credit adds pairs for a principal. It is called with mu held.
func (s *Store) credit(principal string, pairs []Pair) {
	if len(pairs) == 0 {
		return
	}
	b := s.kept(principal)
	for _, p := range pairs {
		b.add(p)
	}
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// book returns the book of a principal, with the stored pairs.
func (s *Store) book(principal string) *book {
	if b := s.loaded(principal); b != nil {
		return b
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	if b := s.loaded(principal); b != nil {
		return b
	}
	known := s.load(principal)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.kept(principal)
	b.adopt(known)
	s.dropBooks(b)
	return b
}

// kept returns the book of a principal in memory, possibly without the stored pairs:
// the next query or save loads them. It is called with mu held.
func (s *Store) kept(principal string) *book {
	b := s.books[principal]
	if b == nil {
		b = newBook()
		s.books[principal] = b
	}
	return b
}

// loaded returns the book of a principal if it has the stored pairs, else nil.
func (s *Store) loaded(principal string) *book {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.books[principal]; b != nil && b.loaded {
		b.used = time.Now()
		return b
	}
	return nil
}

func (s *Store) load(principal string) Known {
	if s.keeper == nil {
		return Known{}
	}
	known, err := s.keeper.Load(principal)
	if err != nil {
		s.log.Warn("stored search feedback is ignored", "reason", err.Error())
	}
	return known
}

// dropBooks evicts idle books, but not keep and those with unsaved pairs. It is called with mu held.
func (s *Store) dropBooks(keep *book) {
	if s.keeper == nil || len(s.books) <= maxBooks {
		return
	}
	idle := slices.DeleteFunc(slices.Collect(maps.Keys(s.books)), func(principal string) bool {
		return s.books[principal] == keep || len(s.books[principal].fresh) > 0
	})
	slices.SortFunc(idle, func(a, b string) int { return s.books[a].used.Compare(s.books[b].used) })
	for _, principal := range idle[:min(len(idle), len(s.books)-maxBooks)] {
		delete(s.books, principal)
	}
}

// follow saves what was learned, with a delay, until Close.
func (s *Store) follow() {
	for {
		select {
		case <-s.dirty:
			select {
			case <-time.After(saveAfter):
			case <-s.quit:
			}
			s.save()
		case <-s.quit:
			s.finish()
			return
		}
	}
}

// finish ends all searches, and saves their results.
func (s *Store) finish() {
	s.mu.Lock()
	for who, t := range s.trails {
		s.credit(who.Principal, t.end(len(t.searches)))
	}
	clear(s.trails)
	s.mu.Unlock()
	s.save()
}

// save merges unsaved pairs into the storage, and takes over those of other processes.
func (s *Store) save() {
	if s.keeper == nil {
		return
	}
	for principal, fresh := range s.takeFresh() {
		all, err := s.keeper.Merge(principal, s.base(principal), fresh)
		if err != nil {
			s.log.Warn("save search feedback", "error", err.Error())
		}
		s.mu.Lock()
		if b := s.kept(principal); err != nil { // the next save retries
			b.fresh.Join(fresh)
		} else {
			b.adopt(all)
		}
		s.dropBooks(nil)
		s.mu.Unlock()
	}
}

// base returns a copy of the stored pairs of a principal.
func (s *Store) base(principal string) Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.kept(principal).base)
}

// takeFresh removes and returns the unsaved pairs, by principal.
func (s *Store) takeFresh() map[string]Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Known{}
	for principal, b := range s.books {
		if len(b.fresh) > 0 {
			all[principal], b.fresh = b.fresh, Known{}
		}
	}
	return all
}
