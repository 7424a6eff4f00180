package store

import (
	"slices"
	"time"
)

// Seen is what this process knows of a process that shares the store.
type Seen struct {
	Member

	// Self says that it is this process.
	Self bool
	// Beaten is when the servers got its last heartbeat.
	Beaten time.Time
	// Lost says that it counts as dead. Processes that leave are forgotten.
	Lost bool
}

// ReportLoad makes the heartbeats of this process report a load, which marks it as a gateway. A store of one process has none.
func (s *Store) ReportLoad(load func() Load) {
	if s == nil || s.members == nil {
		return
	}
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	s.members.load = load
}

// Gateways returns the processes with a load as of their last heartbeats, also lost ones, the oldest first; nil for a store of one process.
func (s *Store) Gateways() (all []Seen) {
	if !s.Shared() {
		return nil
	}
	m := s.members
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, o := range m.others {
		if o.Load != nil {
			all = append(all, Seen{o.Member, id == m.self.ID, o.beaten, id != m.self.ID && o.silent >= deadBeats})
		}
	}
	slices.SortFunc(all, func(a, b Seen) int { return a.Since.Compare(b.Since) })
	return all
}
