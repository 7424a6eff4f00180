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

// past is the logged state of one step and of the steps nested in it. A nil past means that nothing is logged.
type past struct {
	within map[string]*past
	// last is the newest event of the step itself.
	last EventKind
	// attempt is the number in the last Began or Retrying event, until the earliest start of the next.
	attempt int
	until   time.Time
	resting bool // a retry is due and has not started
	begun   int  // how often it was started, in all attempts
	// executions are the execution ids of the attempt, the newest last.
	executions []string
	pending    *Pending
	answers    []json.RawMessage
	// earlier is the last execution of the previous attempt, or from before the run was resumed (reentered); "" for none.
	earlier   string
	reentered bool
	// called: the attempt has called a tool. uncertain: a call from before the run was resumed may have been executed.
	called, uncertain bool
	start             *Started // of a nested workflow
	outcome           string   // "" where it has not ended
	output            json.RawMessage
	fault             *Fault
}

// in returns the history of a nested step, nil for none.
func (p *past) in(name string) *past {
	if p == nil {
		return nil
	}
	return p.within[name]
}

// make returns the history of a path, and adds it if it is missing.
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

// pastRun is the state of a run, built from its log. Finished steps are reduced to their results, so that the memory
// of a long loop is bounded by its results.
type pastRun struct {
	started   Started
	created   time.Time
	root      past
	steps     int // how many have ended, including loop iterations
	passes    int // how many of them are loop iterations
	retries   int
	entries   int           // how often it was resumed
	bytes     int64         // approximate size of the log
	used      time.Duration // running time, without waits and without time when no engine had it
	waiting   map[string]bool
	last      time.Time
	read      []json.RawMessage // data labels from the events
	claimed   bool
	stopping  bool
	stoppedBy string // who canceled it
	over      *Event
}

func newPastRun() *pastRun { return &pastRun{waiting: map[string]bool{}} }

// learn appends the data labels of an event.
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

// clock adds the time since the previous event, unless the run was waiting or had no engine.
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
		if e.Outcome != outcomeFailed && e.Outcome != outcomeCanceled { // else a resumed run needs them
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

// reenter resets failed and canceled steps so that they run again, including catch and finally blocks that ran after a failure.
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

// lastExecution returns the newest execution of the step, "" for none.
func (p *past) lastExecution() string {
	if len(p.executions) == 0 {
		return p.earlier
	}
	return p.executions[len(p.executions)-1]
}

// mayBeDone reports whether a failed call may have been executed anyway: the error did not come from the tool itself.
func mayBeDone(f *Fault) bool {
	return f != nil && !f.Retryable && slices.Contains([]tool.Kind{tool.Timeout, tool.Canceled, tool.Upstream, tool.Limit, tool.Internal}, f.Kind)
}

// ended returns the logged result of a step, and whether it has one.
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

// beganAt returns the number of the started attempt, 0 for none.
func (p *past) beganAt() int {
	if p == nil {
		return 0
	}
	return p.attempt
}

// passes returns how many iterations of a loop have ended.
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

// waited returns what the step was waiting for at the end of the log, nil for nothing.
func (p *past) waited() *Pending {
	if p == nil {
		return nil
	}
	return p.pending
}
