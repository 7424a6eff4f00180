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
	// saveDelay is how long changes are collected before they are saved.
	saveDelay = 5 * time.Second
	// maxProfiles and maxSessions are how many principals, and sessions, are in memory.
	maxProfiles = 32
	maxSessions = 256
)

// Storage stores pairs persistently. It is safe for concurrent use.
type Storage interface {
	// Load returns the stored pairs of a principal. They are never nil, even after an error.
	Load(principal string) (Pairs, error)
	// Merge adds learned to the stored pairs, and returns all pairs. known has the stored
	// pairs as last loaded, in case the storage has lost them. After an error nothing was
	// added.
	Merge(principal string, known, learned Pairs) (Pairs, error)
}

// Options configure a store; nil means all defaults.
type Options struct {
	// Logger gets failures of the storage; nil discards.
	Logger *slog.Logger
	// Reload is how long pairs are used until they are loaded again, as other processes store more; 0 is never.
	Reload time.Duration
}

// Caller identifies a caller: searches and calls are matched within a session, and pairs
// belong to the principal.
type Caller struct{ Principal, Session string }

// Store learns which tools are called after which searches. All methods are safe for concurrent use.
type Store struct {
	log     *slog.Logger
	storage Storage // nil stores nothing
	reload  time.Duration
	dirty   chan struct{}
	quit    chan struct{}
	close   func()
	work    sync.WaitGroup

	mu       sync.Mutex
	profiles map[string]*profile // by principal
	sessions map[Caller]*session

	loadMu sync.Mutex // held while stored pairs are loaded
}

// New starts a store on a keeper; nil keeps pairs in memory only. Close it.
func New(keeper Storage, opts *Options) *Store {
	s := &Store{
		log: slog.New(slog.DiscardHandler), storage: keeper, dirty: make(chan struct{}, 1), quit: make(chan struct{}),
		profiles: map[string]*profile{}, sessions: map[Caller]*session{},
	}
	if opts != nil && opts.Logger != nil {
		s.log = opts.Logger
	}
	if opts != nil {
		s.reload = opts.Reload
	}
	s.close = sync.OnceFunc(func() { close(s.quit); s.work.Wait() })
	s.work.Go(s.run)
	return s
}

// Close saves what was learned. It is idempotent.
func (s *Store) Close() { s.close() }

// RecordSearch records a search for words that returned these tools.
func (s *Store) RecordSearch(who Caller, words map[string]float64, shown []tool.ID) {
	query := filterWords(words)
	if len(query) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.expire(now)
	t := s.sessions[who]
	if t == nil {
		t = &session{}
		s.sessions[who] = t
	}
	t.lastUsed = now
	s.credit(who.Principal, t.search(query, shown, now))
	s.evictSession()
}

// RecordCall records a successful call of a tool. execution is the id of the
// program that did it, "" for none; digest is that of the tool's definition.
func (s *Store) RecordCall(who Caller, execution string, id tool.ID, digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.expire(now)
	t := s.sessions[who]
	if t == nil {
		return // nothing was searched for
	}
	t.lastUsed = now
	s.credit(who.Principal, t.call(execution, id, digest, now))
}

// Boost returns how much each tool should be boosted for a query, above 0 and up to 1.
// current returns the digest of a tool's definition, "" if there is no such tool: pairs
// of another definition do not count.
func (s *Store) Boost(principal string, words map[string]float64, current func(tool.ID) string) map[tool.ID]float64 {
	query := filterWords(words)
	if len(query) == 0 {
		return nil
	}
	b := s.profile(principal)
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.boost(query, current)
}

// expire ends expired searches. It is called with mu held.
func (s *Store) expire(now time.Time) {
	for who, t := range s.sessions {
		s.credit(who.Principal, t.expire(now))
		if len(t.searches) == 0 {
			delete(s.sessions, who)
		}
	}
}

// evictSession evicts the least recently used trail if there are too many.
func (s *Store) evictSession() {
	if len(s.sessions) <= maxSessions {
		return
	}
	var oldest Caller
	var seen time.Time
	for who, t := range s.sessions {
		if seen.IsZero() || t.lastUsed.Before(seen) {
			oldest, seen = who, t.lastUsed
		}
	}
	delete(s.sessions, oldest)
}

// credit adds pairs for a principal. It is called with mu held.
func (s *Store) credit(principal string, pairs []Pair) {
	if len(pairs) == 0 {
		return
	}
	b := s.memoryProfile(principal)
	for _, p := range pairs {
		b.add(p)
	}
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// profile returns the book of a principal, with the stored pairs.
func (s *Store) profile(principal string) *profile {
	if b := s.loadedProfile(principal); b != nil {
		return b
	}
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	if b := s.loadedProfile(principal); b != nil {
		return b
	}
	known, err := s.load(principal)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.memoryProfile(principal)
	if err != nil && b.loaded { // what is known is better than nothing
		known = b.base
	}
	b.setBase(known)
	s.evictProfiles(b)
	return b
}

// memoryProfile returns the book of a principal in memory, possibly without the stored pairs:
// the next query or save loads them. It is called with mu held.
func (s *Store) memoryProfile(principal string) *profile {
	b := s.profiles[principal]
	if b == nil {
		b = newProfile()
		s.profiles[principal] = b
	}
	return b
}

// loadedProfile returns the book of a principal if it has the stored pairs, and they need not be loaded again; else nil.
func (s *Store) loadedProfile(principal string) *profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.profiles[principal]; b != nil && b.loaded && (s.reload == 0 || time.Since(b.baseTime) < s.reload) {
		b.used = time.Now()
		return b
	}
	return nil
}

func (s *Store) load(principal string) (Pairs, error) {
	if s.storage == nil {
		return Pairs{}, nil
	}
	known, err := s.storage.Load(principal)
	if err != nil {
		s.log.Warn("stored search feedback is ignored", "reason", err.Error())
	}
	return known, err
}

// evictProfiles evicts idle books, but not keep and those with unsaved pairs. It is called with mu held.
func (s *Store) evictProfiles(keep *profile) {
	if s.storage == nil || len(s.profiles) <= maxProfiles {
		return
	}
	idle := slices.DeleteFunc(slices.Collect(maps.Keys(s.profiles)), func(principal string) bool {
		return s.profiles[principal] == keep || len(s.profiles[principal].unsaved) > 0
	})
	slices.SortFunc(idle, func(a, b string) int { return s.profiles[a].used.Compare(s.profiles[b].used) })
	for _, principal := range idle[:min(len(idle), len(s.profiles)-maxProfiles)] {
		delete(s.profiles, principal)
	}
}

// run saves what was learned, with a delay, until Close.
func (s *Store) run() {
	for {
		select {
		case <-s.dirty:
			select {
			case <-time.After(saveDelay):
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
	for who, t := range s.sessions {
		s.credit(who.Principal, t.end(len(t.searches)))
	}
	clear(s.sessions)
	s.mu.Unlock()
	s.save()
}

// save merges unsaved pairs into the storage, and takes over those of other processes.
func (s *Store) save() {
	if s.storage == nil {
		return
	}
	for principal, fresh := range s.takeUnsaved() {
		all, err := s.storage.Merge(principal, s.base(principal), fresh)
		if err != nil {
			s.log.Warn("save search feedback", "error", err.Error())
		}
		s.mu.Lock()
		if b := s.memoryProfile(principal); err != nil { // the next save retries
			b.unsaved.Merge(fresh)
		} else {
			b.setBase(all)
		}
		s.evictProfiles(nil)
		s.mu.Unlock()
	}
}

// base returns a copy of the stored pairs of a principal.
func (s *Store) base(principal string) Pairs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.memoryProfile(principal).base)
}

// takeUnsaved removes and returns the unsaved pairs, by principal.
func (s *Store) takeUnsaved() map[string]Pairs {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Pairs{}
	for principal, b := range s.profiles {
		if len(b.unsaved) > 0 {
			all[principal], b.unsaved = b.unsaved, Pairs{}
		}
	}
	return all
}
