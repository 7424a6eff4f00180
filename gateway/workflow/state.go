package workflow

import (
	"slices"
	"sync"
)

// state is the current state of a run in an engine. It is safe for concurrent use.
type state struct {
	// onChange is called after the status or the pending waits have changed; one call at a time.
	onChange func(Run)

	mu         sync.Mutex
	run        Run
	active     int           // branches that are running
	changed    chan struct{} // closed when it changes
	releaseErr error         // why the engine has released an unfinished run
	notifyMu   sync.Mutex
}

func newState(run Run, told func(Run)) *state {
	return &state{onChange: told, run: run, changed: make(chan struct{})}
}

// snapshot returns the run, a channel that is closed at the next change, and why the engine has released it, if so.
func (s *state) snapshot() (Run, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.run
	run.Waiting = slices.Clone(run.Waiting)
	return run, s.changed, s.releaseErr
}

// update changes the run. It calls told if the status or the number of pending waits has changed.
func (s *state) update(do func(*Run)) {
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
		s.notify()
	}
}

func (s *state) notify() {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	run, _, _ := s.snapshot()
	s.onChange(run)
}

// addActive adds n to the number of running branches.
func (s *state) addActive(n int) {
	s.update(func(*Run) { s.active += n })
}

// wait records that a branch waits, until leave is called.
func (s *state) wait(p Pending) (leave func()) {
	s.update(func(run *Run) {
		run.Waiting = append(run.Waiting, p)
		s.active--
	})
	return func() { s.endWait(p.Step) }
}

// endWait records that the branch that waited at a step continues. It is idempotent.
func (s *state) endWait(step string) {
	s.update(func(run *Run) {
		before := len(run.Waiting)
		run.Waiting = slices.DeleteFunc(run.Waiting, func(p Pending) bool { return p.Step == step })
		s.active += before - len(run.Waiting)
	})
}

// updatePending replaces what a step waits for.
func (s *state) updatePending(p Pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.run.Waiting {
		if other.Step == p.Step {
			s.run.Waiting[i] = p
		}
	}
}

// setSteps sets the number of finished steps.
func (s *state) setSteps(steps int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run.Steps = max(s.run.Steps, steps)
}

// release records why the engine has released the run.
func (s *state) release(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseErr = why
	close(s.changed)
	s.changed = make(chan struct{})
}
