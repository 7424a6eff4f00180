package store

import (
	"context"
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
// It waits until this process has written its first heartbeat. The error is that of ctx.
func (s *Store) Gateways(ctx context.Context) (all []Seen, err error) {
	if !s.Shared() {
		return nil, nil
	}
	m := s.members
	select {
	case <-m.first:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, o := range m.others {
		if o.Load != nil {
			all = append(all, Seen{o.Member, id == m.self.ID, o.beaten, m.isLost(id)})
		}
	}
	slices.SortFunc(all, func(a, b Seen) int { return a.Since.Compare(b.Since) })
	return all, nil
}

// isLost reports whether another member counts as dead. A process that has not written many heartbeats compares the times that the
// servers gave to the last ones. It is called with mu held.
func (m *members) isLost(id string) bool {
	o, self := m.others[id], m.others[m.self.ID]
	return id != m.self.ID && (o.silent >= deadBeats || self != nil && self.beaten.Sub(o.beaten) > deadBeats*beatInterval)
}
