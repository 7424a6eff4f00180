package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"sallyport/internal/seal"
	"sallyport/internal/sleep"
)

// Member is a process that uses a shared store.
type Member struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	// Since is when it joined.
	Since time.Time `json:"since"`
	// Load is what it does, nil for a process that runs nothing for others.
	Load *Load `json:"load,omitempty"`
}

// Load is what a gateway does: its programs that run and that wait, and how many run at once at most.
type Load struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	Seats   int `json:"seats"`
}

// String names the process.
func (m Member) String() string { return fmt.Sprintf("process %d on %s", m.PID, m.Host) }

const (
	// beatInterval is how often a member writes a heartbeat. It counts as dead when another member has written deadBeats
	// heartbeats and has seen none of it: the clocks of members are not compared.
	beatInterval = 2 * time.Second
	deadBeats    = 5
	// stalled is the age of the last beat beyond which the store counts as unreachable.
	stalled = 3 * beatInterval
)

// members are the processes that share a store. This one writes beats, and counts those of the others. It is safe for
// concurrent use.
type members struct {
	self    Member
	records *Bucket
	store   *Store
	first   chan struct{} // closed after the first successful beat

	mu     sync.Mutex
	beaten time.Time // the last successful beat of this process
	failed error     // of the last beat
	others map[string]*observed
	claims map[string]*Claims
	load   func() Load // nil for none
}

// observed is what is known of a member.
type observed struct {
	Member

	revision uint64
	beaten   time.Time
	silent   int // the beats of this process since the member's last one
}

// newMembers returns the members of a store. The given store does not wait.
func newMembers(s *Store, set Remote) *members {
	host, _ := os.Hostname() // "" if unknown
	self := Member{ID: "g-" + strings.ToLower(rand.Text()[:16]), Name: set.Name, Host: host, PID: os.Getpid(), Since: time.Now().UTC()}
	records, err := s.Bucket("members", Limits{Records: 1000, Age: time.Hour, Bytes: 4 << 20, Record: 4 << 10})
	if err != nil {
		panic(err) // the name is valid
	}
	return &members{self: self, records: records, store: s, first: make(chan struct{}), others: map[string]*observed{}}
}

// run writes beats until ctx ends.
func (m *members) run(ctx context.Context) {
	for {
		m.beat(ctx)
		if sleep.For(ctx, beatInterval) != nil {
			return
		}
	}
}

// beat writes one beat, and counts those of the others if that succeeded: without the store none can beat.
func (m *members) beat(ctx context.Context) {
	err := m.write(ctx)
	if err == nil {
		err = m.observe(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.failed
	if m.failed = err; err == nil {
		if m.beaten.IsZero() {
			close(m.first)
		}
		m.beaten = time.Now()
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && was == nil:
		m.store.log.Error("the store does not answer, new work is refused until it does", "error", err)
	case err == nil && was != nil:
		m.store.log.Info("the store answers again")
	}
}

func (m *members) write(ctx context.Context) error {
	self := m.self
	m.mu.Lock()
	load := m.load
	m.mu.Unlock()
	if load != nil {
		now := load()
		self.Load = &now
	}
	data, err := json.Marshal(self)
	if err != nil {
		return err
	}
	_, err = m.records.Put(ctx, Key{m.self.ID}, data)
	return err
}

// observe counts the beats of the other members.
func (m *members) observe(ctx context.Context) error {
	found := map[string]*observed{}
	for e, err := range m.records.List(ctx, nil) {
		if err != nil {
			return err
		}
		var one Member
		if json.Unmarshal(e.Value, &one) != nil || len(e.Key) != 1 || one.ID != e.Key[0] {
			m.store.log.Warn("a member of the store cannot be read", "key", fmt.Sprintf("%.80q", e.Key))
			continue
		}
		found[one.ID] = &observed{Member: one, revision: e.Revision, beaten: e.Time}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, now := range found {
		if before := m.others[id]; before != nil && before.revision == now.revision {
			now.silent = before.silent + 1
		}
	}
	m.others = found
	return nil
}

// leave removes this process, so that others need not wait until it counts as dead.
func (m *members) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	if err := m.records.Remove(ctx, Key{m.self.ID}); err != nil {
		m.store.log.Debug("the end of this process is not in the store", "error", err)
	}
}

// alive reports whether a member may be alive, and returns what is known of it.
func (m *members) alive(ctx context.Context, id string) (Member, bool, error) {
	if id == m.self.ID {
		return m.self, true, nil
	}
	m.mu.Lock()
	known := m.others[id]
	m.mu.Unlock()
	if known != nil {
		return known.Member, known.silent < deadBeats, nil
	}
	e, err := m.records.Get(ctx, Key{id}) // it has joined since the last beat, or has left
	if errors.Is(err, ErrNotFound) {
		return Member{ID: id}, false, nil
	}
	if err != nil {
		return Member{}, false, err
	}
	var one Member
	if err := json.Unmarshal(e.Value, &one); err != nil {
		return Member{ID: id}, false, nil //nolint:nilerr // it is reported by observe
	}
	return one, true, nil
}

// Self returns the id of this process among those that share the store, "" for a store of one process.
func (s *Store) Self() string {
	if s == nil || s.members == nil {
		return ""
	}
	return s.members.self.ID
}

// Alive reports whether a process that shares the store may be alive.
func (s *Store) Alive(ctx context.Context, id string) bool {
	if s == nil || s.members == nil || id == "" {
		return false
	}
	_, alive, err := s.members.alive(ctx, id)
	return alive || err != nil
}

// Shared reports whether other processes may use the store at the same time.
func (s *Store) Shared() bool { return s != nil && s.members != nil }

// Seal returns the key for records that the servers must not be able to read; nil if the store is of one process, or has none.
func (s *Store) Seal() *seal.Key {
	if !s.Shared() {
		return nil
	}
	return s.remote.set.Seal
}

// Members returns the processes that share the store and may be alive, nil for a store of one process.
func (s *Store) Members() (all []Member) {
	if s.members == nil {
		return nil
	}
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	for _, o := range s.members.others {
		if o.silent < deadBeats {
			all = append(all, o.Member)
		}
	}
	return all
}

// Available returns an [ErrUnreachable] while the servers of a shared store do not answer or have no majority. A store of
// one process is always available.
func (s *Store) Available() error {
	if s == nil || s.members == nil {
		return nil
	}
	if s.members.isNew() {
		return fmt.Errorf("%w: it has not answered yet", ErrUnreachable)
	}
	return s.members.available()
}

// isNew reports whether the first answer is still awaited.
func (m *members) isNew() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beaten.IsZero() && m.failed == nil
}

func (m *members) available() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed == nil && time.Since(m.beaten) < stalled {
		return nil
	}
	return fmt.Errorf("%w: no write succeeded for %s", ErrUnreachable, time.Since(m.beaten).Round(time.Second))
}
