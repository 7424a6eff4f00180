package workflow

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"sallyport/internal/tool"
)

// The outcomes of a step.
const (
	outcomeOK       = "ok"
	outcomeFailed   = "failed"
	outcomeSkipped  = "skipped"
	outcomeCached   = "cached"
	outcomeCanceled = "canceled"
)

// past is what the log says of one step, and of those within it. A nil past is one of which it says nothing.
type past struct {
	within map[string]*past
	// last is the newest event of the step itself.
	last EventKind
	// attempt is that of the last Began or Retrying, until is when the next may begin.
	attempt int
	until   time.Time
	resting bool // it is to be made again, and has not begun
	begun   int  // how often it has begun, in all attempts
	// executions are those that the attempt has begun, the newest last.
	executions []string
	pending    *Pending
	answers    []json.RawMessage
	// earlier is the last execution of the attempt before, or of the run before it was resumed (reentered); "" for none.
	earlier   string
	reentered bool
	// called: the attempt has called a tool. uncertain: before the run was resumed, that may have been done.
	called, uncertain bool
	start             *Started // of a nested workflow
	outcome           string   // "" where it has not ended
	output            json.RawMessage
	fault             *Fault
}

// in returns what is known of a step within.
func (p *past) in(name string) *past {
	if p == nil {
		return nil
	}
	return p.within[name]
}

// make returns the past of a path, which it adds where there is none.
func (p *past) make(path string) *past {
	for path != "" {
		var name string
		name, path = cutPath(path)
		next := p.within[name]
		if next == nil {
			next = &past{}
			if p.within == nil {
				p.within = map[string]*past{}
			}
			p.within[name] = next
		}
		p = next
	}
	return p
}

// cutPath cuts the first name off a path: "each[3].fetch" is "each", "[3]", "fetch".
func cutPath(path string) (name, rest string) {
	at := strings.IndexAny(path[1:], ".[") + 1
	switch {
	case at == 0:
		return path, ""
	case path[at] == '.':
		return path[:at], path[at+1:]
	}
	return path[:at], path[at:]
}

// pastRun is what a log says of a run so far. Of what has ended it has only its result, so a long loop takes no more
// room than its results.
type pastRun struct {
	started   Started
	created   time.Time
	root      past
	steps     int // how many have ended, passes of loops too
	passes    int // how many of them are passes
	retries   int
	entries   int           // how often it was resumed
	bytes     int64         // of the log, about
	used      time.Duration // how long it has been running, without waits and without the time that nobody had it
	waiting   map[string]bool
	last      time.Time
	read      []json.RawMessage // labels, as the events have them
	claimed   bool
	stopping  bool
	stoppedBy string // who wanted that
	over      *Event
}

func newPastRun() *pastRun { return &pastRun{waiting: map[string]bool{}} }

// learn keeps labels of what was read.
func (h *pastRun) learn(read json.RawMessage) {
	if len(read) > 0 {
		h.read = append(h.read, read)
	}
}

// add adds the next event of the log.
func (h *pastRun) add(e Event) {
	h.bytes += sizeOf(e)
	h.clock(e)
	switch e.Kind {
	case Created:
		h.created = e.Time
		if e.Start != nil {
			h.started = *e.Start
			h.learn(e.Start.Read)
		}
	case Claimed:
		h.claimed = true
	case Reentered:
		h.over, h.stopping = nil, false
		h.entries++
		h.root.reenter()
	case Stopping:
		h.stopping, h.stoppedBy = true, e.By
	case Over:
		h.over = &e
	default:
		h.step(e)
	}
}

// clock counts the time between two events while the run was not waiting, nor without a gateway.
func (h *pastRun) clock(e Event) {
	if e.Kind != Claimed && e.Kind != Reentered && len(h.waiting) == 0 && !h.last.IsZero() && h.claimed {
		h.used += max(e.Time.Sub(h.last), 0)
	}
	h.last = e.Time
	delete(h.waiting, e.Path)
	if e.Kind == Waits {
		h.waiting[e.Path] = true
	}
}

// step adds an event of a step.
func (h *pastRun) step(e Event) {
	if e.Path == "" {
		return
	}
	p := h.root.make(e.Path)
	p.last = e.Kind
	switch e.Kind {
	case Began:
		p.begin(e)
	case Retrying:
		h.retries++
		*p = past{last: Retrying, attempt: e.Attempt, begun: p.begun, until: e.Until, resting: true, earlier: p.lastExecution()}
	case Waits:
		p.pending = e.Pending
	case Answered:
		p.answers = append(p.answers, e.Input)
	case Ended:
		h.steps++
		if strings.HasSuffix(e.Path, "]") {
			h.passes++
		}
		h.learn(e.Read)
		*p = past{
			last: Ended, attempt: p.attempt, begun: p.begun, outcome: e.Outcome, output: e.Output, fault: e.Error, within: p.within, start: p.start,
			earlier: p.lastExecution(), uncertain: (p.called || p.uncertain) && mayBeDone(e.Error),
		}
		if e.Outcome != outcomeFailed && e.Outcome != outcomeCanceled { // else somebody may go on with it
			p.within, p.start = nil, nil
		}
	}
}

func (p *past) begin(e Event) {
	if e.Attempt != p.attempt {
		p.earlier = p.lastExecution()
		p.executions, p.within, p.answers = nil, nil, nil
	}
	p.called, p.uncertain = e.Tool != "", false
	p.attempt = e.Attempt
	p.begun++
	if e.Execution != "" {
		p.executions = append(p.executions, e.Execution)
	}
	if e.Start != nil {
		p.start = e.Start
	}
	p.pending, p.resting = nil, false
}

// reenter makes what has failed or was canceled be made again. What was done in consequence of a failure (catch, finally) is too.
func (p *past) reenter() {
	for name, inner := range p.within {
		inner.reenter()
		if inner.outcome != outcomeFailed && inner.outcome != outcomeCanceled {
			continue
		}
		delete(inner.within, "catch")
		delete(inner.within, "finally")
		p.within[name] = &past{within: inner.within, start: inner.start, earlier: inner.earlier, reentered: true}
		if inner.uncertain {
			p.within[name].attempt, p.within[name].uncertain = inner.attempt, true
		}
	}
}

// lastExecution is the newest execution of the step, "" for none.
func (p *past) lastExecution() string {
	if len(p.executions) == 0 {
		return p.earlier
	}
	return p.executions[len(p.executions)-1]
}

// mayBeDone reports whether a call that failed may have been done all the same: the upstream itself has not said that it failed.
func mayBeDone(f *Fault) bool {
	return f != nil && !f.Retryable && slices.Contains([]tool.Kind{tool.Timeout, tool.Canceled, tool.Upstream, tool.Limit, tool.Internal}, f.Kind)
}

// ended returns what a step came to before, if it did.
func (p *past) ended() (result, bool, error) {
	if p == nil || p.outcome == "" {
		return result{}, false, nil
	}
	value, err := decode(p.output)
	if err != nil {
		return result{}, false, err
	}
	return result{status: p.outcome, value: value, fault: p.fault}, true, nil
}

// beganAt is the attempt that had begun, 0 for none.
func (p *past) beganAt() int {
	if p == nil {
		return 0
	}
	return p.attempt
}

// passes is how many passes of a loop have ended.
func (p *past) passes() (n int) {
	if p == nil {
		return 0
	}
	for name, inner := range p.within {
		if name[0] == '[' && inner.outcome != "" {
			n++
		}
	}
	return n
}

// waited is what the step waited for when the log ended, nil for nothing.
func (p *past) waited() *Pending {
	if p == nil {
		return nil
	}
	return p.pending
}
