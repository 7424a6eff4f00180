package feedback

import (
	"maps"
	"slices"
	"strings"
	"time"

	"sallyport/internal/tool"
)

const (
	// searchTTL is how long after a search a call counts for it.
	searchTTL = 10 * time.Minute
	// maxPrograms is how many programs may follow a search, callsPerProgram how many direct
	// calls count as one program.
	maxPrograms     = 5
	callsPerProgram = 4
	// maxSearches is how many searches of a session are pending at once, maxRuns how many
	// programs are distinguished, maxUnmatched how many unmatched tools a search may have.
	maxSearches  = 8
	maxRuns      = 16
	maxUnmatched = 8
	// earlierWeight is the weight of a call for searches before the last one that showed the tool.
	earlierWeight = 0.5
)

// session has the recent searches and programs of one session.
type session struct {
	searches []*pendingSearch // oldest first
	runs     []run            // programs, oldest first
	lastUsed time.Time
}

// pendingSearch is a search for which calls still count.
type pendingSearch struct {
	words Words
	shown map[tool.ID]bool
	at    time.Time
	// steps counts later calls and programs, in units of a direct call.
	steps int
	// lastCounted has the time at which a tool last counted for it.
	lastCounted map[tool.ID]time.Time
	// answered says that a tool that it showed was called. Otherwise the tools in late,
	// which were called without being shown, count for it.
	answered  bool
	unmatched map[tool.ID]string // with their digests
}

// run is one program, and the tools that it has called.
type run struct {
	id    string
	tools map[tool.ID]bool
}

// search records a search. The same words again are the same search: for it a tool
// counts once in ten minutes, however often it is called. It returns the pairs of
// a search that has ended by that.
func (t *session) search(words Words, shown []tool.ID, now time.Time) (pairs []Pair) {
	next := &pendingSearch{words: words, shown: map[tool.ID]bool{}, lastCounted: map[tool.ID]time.Time{}, unmatched: map[tool.ID]string{}}
	if i := slices.IndexFunc(t.searches, func(s *pendingSearch) bool { return s.words.key() == words.key() }); i >= 0 {
		next = t.searches[i]
		t.searches = slices.Delete(t.searches, i, i+1)
	}
	next.at, next.steps = now, 0
	for _, id := range shown {
		next.shown[id] = true
	}
	t.searches = append(t.searches, next)
	if len(t.searches) > maxSearches {
		return t.end(1)
	}
	return nil
}

// call records a call and returns its pairs: it counts for the searches that showed
// the tool, for the last one most. For earlier searches, or the last one if none
// showed the tool, it is unmatched: a tool that they showed may still be called.
func (t *session) call(execution string, id tool.ID, digest string, now time.Time) (pairs []Pair) {
	if !t.countStep(execution, id) {
		return nil
	}
	worth, showed := 1.0, false
	for i, s := range slices.Backward(t.searches) {
		switch {
		case s.shown[id]:
			s.answered = true
			if last, ok := s.lastCounted[id]; !ok || now.Sub(last) > searchTTL {
				pairs = append(pairs, s.pair(id, digest, worth))
				s.lastCounted[id] = now
			}
			showed, worth = true, earlierWeight
		case (showed || i == len(t.searches)-1) && len(s.unmatched) < maxUnmatched:
			s.unmatched[id] = digest
		}
	}
	return pairs
}

// countStep counts a call or a program, and reports whether the call is the program's
// first of that tool.
func (t *session) countStep(execution string, id tool.ID) bool {
	if execution == "" {
		t.advance(1)
		return true
	}
	i := slices.IndexFunc(t.runs, func(r run) bool { return r.id == execution })
	if i < 0 {
		t.advance(callsPerProgram)
		t.runs = append(t.runs, run{execution, map[tool.ID]bool{}})
		t.runs = t.runs[max(0, len(t.runs)-maxRuns):]
		i = len(t.runs) - 1
	}
	if t.runs[i].tools[id] {
		return false
	}
	t.runs[i].tools[id] = true
	return true
}

func (t *session) advance(steps int) {
	for _, s := range t.searches {
		s.steps += steps
	}
}

// expire ends expired searches, and returns their pairs.
func (t *session) expire(now time.Time) (pairs []Pair) {
	for i, s := range slices.Backward(t.searches) {
		if now.Sub(s.at) > searchTTL || s.steps > maxPrograms*callsPerProgram {
			return t.end(i + 1) // older ones have expired, too
		}
	}
	return nil
}

// end ends the n oldest searches and returns their pairs.
func (t *session) end(n int) (pairs []Pair) {
	for _, s := range t.searches[:n] {
		if s.answered {
			continue
		}
		for _, id := range slices.SortedFunc(maps.Keys(s.unmatched), func(a, b tool.ID) int { return strings.Compare(a.String(), b.String()) }) {
			pairs = append(pairs, s.pair(id, s.unmatched[id], 1/float64(1+len(s.unmatched))))
		}
	}
	t.searches = slices.Delete(t.searches, 0, n)
	return pairs
}

func (s *pendingSearch) pair(id tool.ID, digest string, worth float64) Pair {
	return Pair{Words: s.words, Tool: id, Digest: digest, Strength: worth, At: time.Now().Unix()}
}
