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

// stepHistory is the logged state of one step and of the steps nested in it. A nil past means that nothing is logged.
type stepHistory struct {
	children map[string]*stepHistory
	// last is the newest event of the step itself.
	last EventKind
	// attempt is the number in the last Began or Retrying event, until the earliest start of the next.
	attempt      int
	retryAt      time.Time
	retryPending bool // a retry is due and has not started
	starts       int  // how often it was started or resumed, in all attempts
	began        time.Time
	// executions are the execution ids of the attempt, the newest last.
	executions []string
	pending    *Pending
	answers    []json.RawMessage
	// earlier are the executions of previous attempts, and from before the run was resumed (reentered), the newest last.
	earlier   []string
	reentered bool
	// called: the attempt has called a tool. uncertain: a call from before the run was resumed may have been executed.
	called, uncertain bool
	start             *Started // of a nested workflow
	task              string   // the id of a step's task, which all its attempts continue
	outcome           string   // "" where it has not ended
	output            json.RawMessage
	fault             *Fault
}

// child returns the history of a nested step, nil for none.
func (p *stepHistory) child(name string) *stepHistory {
	if p == nil {
		return nil
	}
	return p.children[name]
}

// ensure returns the history of a path, and adds it if it is missing.
func (p *stepHistory) ensure(path string) *stepHistory {
	for path != "" {
		var name string
		name, path = cutPath(path)
		next := p.children[name]
		if next == nil {
			next = &stepHistory{}
			if p.children == nil {
				p.children = map[string]*stepHistory{}
			}
			p.children[name] = next
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

// runHistory is the state of a run, built from its log. Finished steps are reduced to their results, so that the memory
// of a long loop is bounded by its results.
type runHistory struct {
	started   Started
	created   time.Time
	root      stepHistory
	steps     int // how many have ended, including loop iterations
	passes    int // how many of them are loop iterations
	retries   int
	resumes   int           // how often it was resumed
	bytes     int64         // approximate size of the log
	used      time.Duration // running time, without waits and without time when no engine had it
	waiting   map[string]bool
	last      time.Time
	labels    []json.RawMessage // data labels from the events
	claimed   bool
	stopping  bool
	stoppedBy string // who canceled it
	over      *Event
}

func newRunHistory() *runHistory { return &runHistory{waiting: map[string]bool{}} }

// addLabels appends the data labels of an event.
func (h *runHistory) addLabels(read json.RawMessage) {
	if len(read) > 0 {
		h.labels = append(h.labels, read)
	}
}

// add adds the next event of the log.
func (h *runHistory) add(e Event) {
	h.bytes += sizeOf(e)
	h.addTime(e)
	switch e.Kind {
	case Created:
		h.created = e.Time
		if e.Start != nil {
			h.started = *e.Start
			h.addLabels(e.Start.Read)
		}
	case Claimed:
		h.claimed = true
	case Reentered:
		h.over, h.stopping = nil, false
		h.resumes++
		h.root.reenter()
	case Stopping:
		h.stopping, h.stoppedBy = true, e.By
	case Over:
		h.over = &e
	default:
		h.step(e)
	}
}

// addTime adds the time since the previous event, unless the run was waiting or had no engine.
func (h *runHistory) addTime(e Event) {
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
func (h *runHistory) step(e Event) {
	if e.Path == "" {
		return
	}
	p := h.root.ensure(e.Path)
	p.last = e.Kind
	switch e.Kind {
	case Began:
		p.begin(e)
	case Retrying:
		h.retries++
		*p = stepHistory{last: Retrying, attempt: e.Attempt, starts: p.starts, retryAt: e.Until, retryPending: true, earlier: p.allExecutions(), task: p.task, children: executionsOf(p.children)}
	case Waits:
		p.pending = e.Pending
	case Answered:
		p.answers = append(p.answers, e.Input)
	case Ended:
		h.steps++
		if strings.HasSuffix(e.Path, "]") {
			h.passes++
		}
		h.addLabels(e.Read)
		*p = stepHistory{
			last: Ended, attempt: p.attempt, starts: p.starts, outcome: e.Outcome, output: e.Output, fault: e.Error, children: p.children, start: p.start, task: p.task,
			earlier: p.allExecutions(), uncertain: (p.called || p.uncertain) && mayBeDone(e.Error),
		}
		if e.Outcome != outcomeFailed && e.Outcome != outcomeCanceled { // else a resumed run needs them
			p.children, p.start = nil, nil
		}
	}
}

func (p *stepHistory) begin(e Event) {
	if e.Attempt != max(p.attempt, 1) { // a resumed step has no attempt yet, and keeps its children
		p.earlier, p.children = p.allExecutions(), executionsOf(p.children)
		p.executions, p.answers = nil, nil
	}
	p.called, p.uncertain = e.Tool != "", false
	p.attempt, p.began = e.Attempt, e.Time
	p.starts++
	if e.Execution != "" {
		p.executions = append(p.executions, e.Execution)
	}
	if e.Task != "" {
		p.task = e.Task
	}
	if e.Start != nil {
		p.start = e.Start
	}
	p.pending, p.retryPending = nil, false
}

// reenter resets failed and canceled steps so that they run again, including catch and finally blocks that ran after a failure.
func (p *stepHistory) reenter() {
	for name, inner := range p.children {
		inner.reenter()
		if inner.outcome != outcomeFailed && inner.outcome != outcomeCanceled {
			continue
		}
		delete(inner.children, "catch")
		delete(inner.children, "finally")
		p.children[name] = &stepHistory{starts: inner.starts + 1, children: inner.children, start: inner.start, earlier: inner.earlier, task: inner.task, reentered: true}
		if inner.uncertain {
			p.children[name].attempt, p.children[name].uncertain = inner.attempt, true
		}
	}
}

// allExecutions returns the executions of the step, of all attempts, the newest last.
func (p *stepHistory) allExecutions() []string {
	return slices.Concat(p.earlier, p.executions)
}

// executionsOf returns the histories of the steps in a block for its next attempt: only their executions are kept.
func executionsOf(children map[string]*stepHistory) map[string]*stepHistory {
	kept := map[string]*stepHistory{}
	for name, inner := range children {
		before := &stepHistory{earlier: inner.allExecutions(), children: executionsOf(inner.children)}
		if len(before.earlier)+len(before.children) > 0 {
			kept[name] = before
		}
	}
	return kept
}

// mayBeDone reports whether a failed call may have been executed anyway: the error did not come from the tool itself.
func mayBeDone(f *Fault) bool {
	return f != nil && !f.Retryable && slices.Contains([]tool.Kind{tool.Timeout, tool.Canceled, tool.Upstream, tool.Limit, tool.Internal}, f.Kind)
}

// endResult returns the logged result of a step, and whether it has one.
func (p *stepHistory) endResult() (result, bool, error) {
	if p == nil || p.outcome == "" {
		return result{}, false, nil
	}
	value, err := decode(p.output)
	if err != nil {
		return result{}, false, err
	}
	return result{status: p.outcome, value: value, fault: p.fault}, true, nil
}

// currentAttempt returns the number of the started attempt, 0 for none.
func (p *stepHistory) currentAttempt() int {
	if p == nil {
		return 0
	}
	return p.attempt
}

// passes returns how many iterations of a loop have ended.
func (p *stepHistory) passes() (n int) {
	if p == nil {
		return 0
	}
	for name, inner := range p.children {
		if name[0] == '[' && inner.outcome != "" {
			n++
		}
	}
	return n
}

// pendingWait returns what the step was waiting for at the end of the log, nil for nothing.
func (p *stepHistory) pendingWait() *Pending {
	if p == nil {
		return nil
	}
	return p.pending
}
