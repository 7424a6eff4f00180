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
	// saveAfter is how long changes are gathered before they are kept.
	saveAfter = 5 * time.Second
	// maxBooks and maxTrails are how many principals, and sessions, are in memory.
	maxBooks  = 32
	maxTrails = 256
)

// Keeper keeps what was learned, beyond this process. It is safe for concurrent use.
type Keeper interface {
	// Load returns what is kept of a principal. It is not nil, after an error neither.
	Load(principal string) (Known, error)
	// Merge adds what was learned to what is kept, and returns all of it. known is what
	// was kept when it was last seen, for a keeper that has lost it. An error says that
	// nothing was added.
	Merge(principal string, known, learned Known) (Known, error)
}

// Options configure a store; nil means all defaults.
type Options struct {
	// Logger gets what cannot be kept; nil discards.
	Logger *slog.Logger
}

// Who searches and calls: what one session of a principal does belongs together,
// and what is learned belongs to the principal.
type Who struct{ Principal, Session string }

// Store learns. All methods are safe for concurrent use.
type Store struct {
	log    *slog.Logger
	keeper Keeper // nil keeps nothing
	dirty  chan struct{}
	quit   chan struct{}
	close  func()
	work   sync.WaitGroup

	mu     sync.Mutex
	books  map[string]*book // by principal
	trails map[Who]*trail

	loading sync.Mutex // held while something kept is loaded
}

// New starts a store that has what keeper has; nil keeps nothing. Close it.
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

// Close keeps what was learned, and ends. It is idempotent.
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

// Favour says how much each tool should be lifted for a query, over 0 to 1. current
// returns the digest of a tool's definition, "" if there is no such tool: what was
// learned of another definition does not count.
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

// expire ends the searches that are over. It is called with mu held.
func (s *Store) expire(now time.Time) {
	for who, t := range s.trails {
		s.credit(who.Principal, t.expire(now))
		if len(t.searches) == 0 {
			delete(s.trails, who)
		}
	}
}

// dropTrail makes room: the least recently used one goes.
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

// credit remembers pairs for a principal. It is called with mu held.
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

// book returns that of a principal, with what is kept of it.
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

// kept returns the book of a principal as it is in memory: what the keeper has may
// be missing until the next request, or it is saved. It is called with mu held.
func (s *Store) kept(principal string) *book {
	b := s.books[principal]
	if b == nil {
		b = newBook()
		s.books[principal] = b
	}
	return b
}

// loaded returns the book of a principal if it has what is kept.
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
		s.log.Warn("kept clicks are not used", "reason", err.Error())
	}
	return known
}

// dropBooks makes room, but for keep and for what is not kept yet. It is called with mu held.
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

// follow keeps what was learned, some time after it was, until Close.
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

// finish ends all searches, and keeps their results.
func (s *Store) finish() {
	s.mu.Lock()
	for who, t := range s.trails {
		s.credit(who.Principal, t.end(len(t.searches)))
	}
	clear(s.trails)
	s.mu.Unlock()
	s.save()
}

// save hands the keeper what it does not have, and learns what it has from others.
func (s *Store) save() {
	if s.keeper == nil {
		return
	}
	for principal, fresh := range s.takeFresh() {
		all, err := s.keeper.Merge(principal, s.base(principal), fresh)
		if err != nil {
			s.log.Warn("clicks cannot be kept", "error", err.Error())
		}
		s.mu.Lock()
		if b := s.kept(principal); err != nil { // with the next
			b.fresh.Join(fresh)
		} else {
			b.adopt(all)
		}
		s.dropBooks(nil)
		s.mu.Unlock()
	}
}

// base returns a copy of what is known of a principal, without what is fresh.
func (s *Store) base(principal string) Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.kept(principal).base)
}

// takeFresh empties what the keeper does not have.
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
