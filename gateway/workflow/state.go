package workflow

import (
	"slices"
	"sync"
)

// state is how a run stands, while an engine has it. It is safe for concurrent use.
type state struct {
	// told is called after the status, or what is waited for, has become another; one call at a time.
	told func(Run)

	mu      sync.Mutex
	run     Run
	active  int           // branches that go on
	changed chan struct{} // closed when it changes
	left    error         // why the engine does not have it any more, though it is not over
	telling sync.Mutex
}

func newState(run Run, told func(Run)) *state {
	return &state{told: told, run: run, changed: make(chan struct{})}
}

// now returns how the run stands, and what is closed when it changes.
func (s *state) now() (Run, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.run
	run.Waiting = slices.Clone(run.Waiting)
	return run, s.changed, s.left
}

// alter changes how the run stands, and tells of it where that matters to others.
func (s *state) alter(do func(*Run)) {
	s.mu.Lock()
	before, waits := s.run.Status, len(s.run.Waiting)
	do(&s.run)
	if s.run.Status == Running || s.run.Status == Waiting {
		s.run.Status = Running
		if s.active == 0 && len(s.run.Waiting) > 0 {
			s.run.Status = Waiting
		}
	}
	matters := s.run.Status != before || len(s.run.Waiting) != waits
	if matters {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	s.mu.Unlock()
	if matters {
		s.tell()
	}
}

func (s *state) tell() {
	s.telling.Lock()
	defer s.telling.Unlock()
	run, _, _ := s.now()
	s.told(run)
}

// busy counts branches that begin to go on, or end.
func (s *state) busy(n int) {
	s.alter(func(*Run) { s.active += n })
}

// wait notes that a branch waits, until leave is called.
func (s *state) wait(p Pending) (leave func()) {
	s.alter(func(run *Run) {
		run.Waiting = append(run.Waiting, p)
		s.active--
	})
	return func() { s.waitsNoMore(p.Step) }
}

// waitsNoMore notes that the branch that waited at a step continues. Only the first time counts.
func (s *state) waitsNoMore(step string) {
	s.alter(func(run *Run) {
		before := len(run.Waiting)
		run.Waiting = slices.DeleteFunc(run.Waiting, func(p Pending) bool { return p.Step == step })
		s.active += before - len(run.Waiting)
	})
}

// ask replaces what is asked for at a step that waits.
func (s *state) ask(p Pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.run.Waiting {
		if other.Step == p.Step {
			s.run.Waiting[i] = p
		}
	}
}

// ended notes how many steps have ended.
func (s *state) ended(steps int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run.Steps = max(s.run.Steps, steps)
}

// leave says that the engine does not have the run any more.
func (s *state) leave(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = why
	close(s.changed)
	s.changed = make(chan struct{})
}
