package workers

import (
	"cmp"
	"slices"
	"time"
)

// Stats is what a gateway knows of all processes of a worker.
type Stats struct {
	Name string
	// Processes is how many have joined; 0 for a worker that has left, of which only Programs is known.
	Processes int
	// Seats and Busy are of its last beats, for all gateways. Running is how many programs of this gateway it runs.
	Seats, Busy, Running int
	// Age is the time since the last beat of the process that is silent for longest.
	Age time.Duration
	// Draining is set if no process takes programs.
	Draining bool
	// Programs is how many programs of this gateway have ended there, by the word of how.
	Programs map[string]int64
}

// words are how programs end on a worker, as [Stats] has them.
var words = map[verdict]string{unknown: "canceled", fine: "ended", refused: "not_started", lost: "lost"}

// Stats returns what the gateway knows of its workers, by name.
func (p *Pool) Stats() []Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := map[string]*Stats{}
	for name := range p.counts {
		by[name] = p.newStats(name)
	}
	for _, m := range p.members {
		s := by[m.Name]
		if s == nil {
			s = p.newStats(m.Name)
			by[m.Name] = s
		}
		s.Processes++
		s.Seats, s.Busy, s.Running = s.Seats+m.Seats, s.Busy+m.Busy, s.Running+m.running
		s.Age, s.Draining = max(s.Age, time.Since(m.Seen)), s.Draining && m.Draining
	}
	all := make([]Stats, 0, len(by))
	for _, s := range by {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Stats) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// newStats returns the counts of a worker; all are 0 before its first program, as a metric should be. It is called with mu held.
func (p *Pool) newStats(name string) *Stats {
	s := &Stats{Name: name, Draining: true, Programs: map[string]int64{}}
	for v, n := range p.counts[name] {
		s.Programs[words[verdict(v)]] = n
	}
	return s
}

// count counts a program that has ended on a worker. It is called with mu held.
func (p *Pool) count(name string, v verdict) {
	if len(p.counts) > maxWorkers {
		for other := range p.counts {
			if !p.isMember(other) {
				delete(p.counts, other)
			}
		}
	}
	c := p.counts[name]
	c[v]++
	p.counts[name] = c
}

// isMember reports whether a process of this name has joined. It is called with mu held.
func (p *Pool) isMember(name string) bool {
	for _, m := range p.members {
		if m.Name == name {
			return true
		}
	}
	return false
}
