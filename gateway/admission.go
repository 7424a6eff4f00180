package gateway

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// admission lets only so many programs run at once. The others wait in lines, one for each principal and one for each run of a
// workflow, and the lines take turns: who asks for many programs does not keep another's from their turn. It is safe
// for concurrent use.
type admission struct {
	parallel int
	limits   func() config.Sandbox // queue and how long one waits in it

	delegated atomic.Int64 // calls whose programs have left their seats to what they called

	mu      sync.Mutex
	taken   int
	lines   []*line // that have somebody waiting, the next one first
	waiting int     // in lines that are bounded
	usual   float64 // seconds that programs have had their seat lately
}

// line is who waits of one principal, or of a run.
type line struct {
	key     string
	patient bool // a run of a workflow waits as long as it takes, and is not bounded here
	turns   []*turn
}

// turn is one program that waits.
type turn struct {
	given chan *seat // holds one; closed for nobody's turn any more
}

// seat is what a program has while it runs. While it waits for a person it leaves it; when it goes on it has one again, if
// none is free one more than there are: who answers does not wait, too.
type seat struct {
	of    *admission
	since time.Time

	mu           sync.Mutex
	taken, ended bool
}

// maxDelegated is how many calls may go on at once, for each program that may run, that run programs themselves: whoever calls
// keeps its sandbox.
const maxDelegated = 16

// delegate counts one more of them, and reports whether it may go on.
func (a *admission) delegate() bool {
	if a.delegated.Add(1) <= int64(maxDelegated*a.parallel) {
		return true
	}
	a.delegated.Add(-1)
	return false
}

// enter waits for a seat. Errors are *tool.Error.
func (a *admission) enter(ctx context.Context) (*seat, error) {
	t, s, err := a.line(ctx)
	if err != nil || s != nil {
		return s, err
	}
	var late <-chan time.Time
	if unwaitedBy(ctx) == "" {
		timer := time.NewTimer(a.limits().QueueWait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case s := <-t.given:
		if s == nil {
			return nil, a.busy()
		}
		return s, nil
	case <-ctx.Done():
		err = tool.AsError(ctx.Err())
	case <-late:
		err = a.busy()
	}
	if s := a.forget(t); s != nil && ctx.Err() == nil {
		return s, nil // it has come just now
	} else if s != nil {
		s.leave()
	}
	return nil, err
}

// line gives a seat at once, or a place in a line.
func (a *admission) line(ctx context.Context) (*turn, *seat, error) {
	box := a.limits()
	run := unwaitedBy(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken < a.parallel && len(a.lines) == 0 {
		a.taken++
		return nil, &seat{of: a, since: time.Now(), taken: true}, nil
	}
	key := tool.Principal(ctx) + "\x00" + run
	i := slices.IndexFunc(a.lines, func(l *line) bool { return l.key == key })
	if run == "" && a.waiting >= box.Queue && !a.makeRoom(i) {
		return nil, nil, a.busyNow()
	}
	t := &turn{given: make(chan *seat, 1)}
	if i < 0 { // makeRoom removes none where there is one for this
		a.lines = append(a.lines, &line{key: key, patient: run != ""})
		i = len(a.lines) - 1
	}
	a.lines[i].turns = append(a.lines[i].turns, t)
	if run == "" {
		a.waiting++
	}
	return t, nil, nil
}

// makeRoom sends the last one of the longest line away for somebody whose own line is shorter by more than one. It is called with mu held.
func (a *admission) makeRoom(own int) bool {
	mine := 0
	if own >= 0 {
		mine = len(a.lines[own].turns)
	}
	var longest *line
	for _, l := range a.lines {
		if !l.patient && (longest == nil || len(l.turns) > len(longest.turns)) {
			longest = l
		}
	}
	if longest == nil || len(longest.turns) <= mine+1 {
		return false
	}
	last := longest.turns[len(longest.turns)-1]
	longest.turns = longest.turns[:len(longest.turns)-1]
	a.waiting--
	close(last.given)
	return true
}

// next gives free seats to those whose turn it is: one of each line, then it is the next line's. It is called with mu held.
func (a *admission) next() {
	for a.taken < a.parallel && len(a.lines) > 0 {
		l := a.lines[0]
		t := l.turns[0]
		l.turns, a.lines = l.turns[1:], a.lines[1:]
		if len(l.turns) > 0 {
			a.lines = append(a.lines, l)
		}
		if !l.patient {
			a.waiting--
		}
		a.taken++
		t.given <- &seat{of: a, since: time.Now(), taken: true}
	}
}

// forget takes somebody out of the lines, and returns the seat that was given to him meanwhile, nil for none.
func (a *admission) forget(t *turn) *seat {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, l := range a.lines {
		at := slices.Index(l.turns, t)
		if at < 0 {
			continue
		}
		l.turns = slices.Delete(l.turns, at, at+1)
		if !l.patient {
			a.waiting--
		}
		if len(l.turns) == 0 {
			a.lines = slices.Delete(a.lines, i, i+1)
		}
		return nil
	}
	return <-t.given // given, or closed
}

// leave gives the seat to others. Again it does nothing.
func (s *seat) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.taken {
		return
	}
	s.taken = false
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.taken--
	s.of.next()
}

// back is when the program goes on that has left its seat.
func (s *seat) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken || s.ended {
		return
	}
	s.taken = true
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.taken++
}

// end is the end of the program.
func (s *seat) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.leave()
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	const weight = 0.1
	s.of.usual += weight * (time.Since(s.since).Seconds() - s.of.usual)
}

// maxAfter is the longest time after which somebody is told to try again.
const maxAfter = time.Minute

func (a *admission) busy() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busyNow()
}

// busyNow tells when there may be room: half of those who wait now have had their turn then. It is called with mu held.
func (a *admission) busyNow() error {
	seconds := math.Ceil(a.usual * float64(a.waiting+1) / 2 / float64(max(1, a.parallel)))
	after := min(maxAfter, max(time.Second, time.Duration(seconds)*time.Second))
	return &tool.Error{Kind: tool.Busy, Message: "too many programs are running", Hint: fmt.Sprintf("try again in %d s", int(after.Seconds())), Retryable: true, After: after}
}

// load is how many programs run, and how many wait for their turn.
func (a *admission) load() (running, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lines {
		waiting += len(l.turns)
	}
	return a.taken, waiting
}

// Load returns how many programs run now, without those that wait for a person, and how many wait for their turn.
func (g *Gateway) Load() (running, waiting int) { return g.admission.load() }
