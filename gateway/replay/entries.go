package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// action is how to answer a call that is in the journal of the resumed execution.
type action int

const (
	actionAnswer  action = iota // return the recorded result
	actionRepeat                // make the call again: it was not done
	actionConfirm               // it may have been done: require confirmation, unless it is safe to repeat
)

// entry is a call in the journal of the resumed execution.
type entry struct {
	journal.Call
	place     int  // its number in the new journal, from 1; 0 if it is not carried over
	recorded  bool // the new journal has that the program has made this call again
	action    action
	requested bool // the program has made this call again
	replaced  bool // a new call replaces it
}

// task returns the id of the task that a crash interrupted: its result answers the call. p may be nil.
func (p *entry) task() string {
	if p == nil || p.action != actionConfirm || p.State != journal.Begun {
		return ""
	}
	return p.Task
}

func (p *entry) answer() (tool.Result, error) {
	if p.Err != nil {
		return tool.Result{}, p.Err
	}
	return p.Result, nil
}

// actionOf returns the action for a call of an execution that ended with a fault. A failure that the program caught is
// part of its state and is returned again. The failure that ended the program is retried, if the upstream itself reported
// it.
func actionOf(c journal.Call, end history.End) action {
	switch {
	case c.Decision != "":
		return actionAnswer
	case c.State == journal.Refused:
		return actionRepeat
	case c.State != journal.Ended || c.Lost:
		return actionConfirm
	case end.Record.Status == execution.Interrupted && c.Last && c.Err != nil && c.Err.Kind == tool.Canceled: // the program did not see that
		return actionConfirm
	case succeeded(c), !endedWith(c, end):
		return actionAnswer
	case uncertain(c):
		return actionConfirm
	}
	return actionRepeat
}

// endedWith reports whether the failure of a call ended the program: its fault is that error, not another that quotes it.
func endedWith(c journal.Call, end history.End) bool {
	message := c.Result.Text()
	if c.Err != nil {
		message = c.Err.Message
	}
	message = sanitize.Head(strings.TrimSpace(message), 200)
	return end.FaultType == "ToolError" && message != "" && strings.HasPrefix(strings.TrimSpace(end.Fault), message)
}

// replayer matches the calls of a program with a journal. It is safe for concurrent use.
type replayer struct {
	replay  *Replay
	resumes string
	same    bool // the program is unchanged

	mu         sync.Mutex
	known      map[callKey][]*entry
	unresolved []*entry      // the calls that may have been done
	remaining  int           // number of recorded calls that the program must make before a new one
	changed    chan struct{} // closed when an entry is taken or released
	answered   int
	diverged   *tool.Error
}

// callKey identifies equal calls: the tool, and the digest of the canonical arguments.
type callKey struct {
	tool      tool.ID
	arguments string
}

// replayTimeout is how long a new call waits for outstanding recorded calls without any progress.
const replayTimeout = time.Second

// newReplayer returns the answers from a journal, and the calls that the new journal carries over. With only, just those calls
// are used, and the program makes all others again.
func newReplayer(c *journal.Contents, end history.End, same bool, only func(journal.Call) bool) (*replayer, []journal.Call) {
	r := &replayer{resumes: c.ID, same: same && only == nil, known: map[callKey][]*entry{}, changed: make(chan struct{})}
	carried := slices.Clone(c.Calls)
	if only != nil {
		carried = slices.DeleteFunc(carried, func(c journal.Call) bool { return !only(c) })
	}
	for i := range carried {
		if carried[i].Origin == "" {
			carried[i].Origin = fmt.Sprintf("%s/%d", c.ID, carried[i].Number)
		}
		p := &entry{Call: carried[i], place: i + 1, action: actionOf(carried[i], end)}
		if only != nil && uncertain(p.Call) && p.Decision == "" {
			p.action = actionConfirm
		}
		if p.action == actionAnswer && r.same && (p.Asked || !p.Optional) {
			r.remaining++
		} else {
			p.Optional, carried[i].Optional = true, true
		}
		r.add(p)
	}
	return r, carried
}

// add adds an entry. mu must be held, or r not shared yet.
func (r *replayer) add(p *entry) {
	key := callKey{p.Tool, p.Arguments}
	r.known[key] = append(r.known[key], p)
	if uncertain(p.Call) {
		r.unresolved = append(r.unresolved, p)
	}
}

// take returns the recorded call for a call, nil for a new one. Of several equal ones, those with an answer come first, in
// order. For a new call, kin are uncertain calls of the same tool that may mean the same. The error is for a new call while
// recorded ones are outstanding.
func (r *replayer) take(ctx context.Context, made *toolcall.Attempt, harmless func(journal.Call) bool) (found *entry, kin []*entry, err error) {
	patience := time.NewTimer(replayTimeout)
	defer patience.Stop()
	for patient := true; ; {
		found, kin, stirred, err := r.lookup(made, harmless, patient)
		if stirred == nil {
			return found, kin, err
		}
		select {
		case <-stirred:
			patience.Reset(replayTimeout)
		case <-patience.C:
			if err := r.diverge(made); err != nil {
				return nil, nil, err
			}
			patient = false
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// lookup finds a call. If stirred is not nil, the call must wait for it and look again.
func (r *replayer) lookup(made *toolcall.Attempt, harmless func(journal.Call) bool, patient bool) (found *entry, kin []*entry, stirred <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.find(callKey{made.Tool, made.Arguments}); found != nil {
		return found, nil, nil, nil
	}
	if r.diverged != nil && r.remaining > 0 {
		return nil, nil, nil, r.diverged
	}
	kin = r.similarCalls(made.Tool, harmless)
	if r.remaining > 0 || patient && r.same && len(kin) > 0 {
		return nil, nil, r.changed, nil
	}
	return nil, kin, nil, nil
}

// find takes the first of the equal calls, those with an answer before the others. A call that a person left is not
// removed: it is answered the same way each time. mu must be held.
func (r *replayer) find(key callKey) *entry {
	list := r.known[key]
	if len(list) == 0 {
		return nil
	}
	at := slices.IndexFunc(list, func(p *entry) bool { return p.action == actionAnswer && p.Decision != journal.Skipped })
	if at < 0 {
		at = max(0, slices.IndexFunc(list, func(p *entry) bool { return p.action == actionAnswer }))
	}
	found := list[at]
	if found.Decision != journal.Skipped {
		r.known[key] = slices.Delete(slices.Clone(list), at, at+1)
	}
	if found.action == actionAnswer {
		r.answered++
	}
	if !found.Optional && !found.requested {
		r.remaining--
	}
	found.requested = true
	r.notify()
	return found
}

// notify wakes the waiting calls. mu must be held.
func (r *replayer) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// similarCalls returns the uncertain calls that a new call of the same tool may repeat with equivalent arguments. Calls that the
// unchanged program has made again exactly are not among them. mu must be held.
func (r *replayer) similarCalls(id tool.ID, harmless func(journal.Call) bool) (kin []*entry) {
	for _, p := range r.unresolved {
		if p.Tool == id && !p.replaced && uncertain(p.Call) && !(r.same && p.requested) && !harmless(p.Call) {
			kin = append(kin, p)
		}
	}
	return kin
}

// release returns a call that was taken but neither made nor decided: it is still in doubt.
func (r *replayer) release(p *entry) {
	if p == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := callKey{p.Tool, p.Arguments}
	if p.replaced || slices.Contains(r.known[key], p) || p.action == actionAnswer && p.Decision != journal.Skipped {
		return
	}
	r.known[key] = append(r.known[key], p)
	r.notify()
}

// replace marks calls as replaced by a new one, and returns their numbers in the new journal.
func (r *replayer) replace(repeats *entry, d *replayDoubt) (places []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	replaced := []*entry{repeats}
	if d != nil && !d.exact {
		replaced = d.calls
	}
	for _, p := range replaced {
		if p == nil || p.replaced {
			continue
		}
		if p.replaced = true; p.place > 0 {
			places = append(places, p.place)
		}
		r.forget(p)
	}
	return places
}

// forget removes an entry. mu must be held.
func (r *replayer) forget(p *entry) {
	key := callKey{p.Tool, p.Arguments}
	r.known[key] = slices.DeleteFunc(slices.Clone(r.known[key]), func(q *entry) bool { return q == p })
}

// markAsked records in the journal, once, that the program has made a call again.
func (r *replayer) markAsked(w *journal.Writer, p *entry) error {
	r.mu.Lock()
	first := !p.Asked
	p.Asked = true
	r.mu.Unlock()
	if p.place == 0 || p.recorded || !first && p.Decision == journal.Skipped {
		return nil
	}
	return w.Request(p.place)
}

// decide records a person's answer about the calls of a doubt: their result, or failed for calls that are left.
func (r *replayer) decide(w *journal.Writer, made *toolcall.Attempt, d *replayDoubt, decision journal.Decision, result tool.Result, failed *tool.Error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range d.calls {
		if p.replaced || p.place == 0 {
			continue
		}
		if err := w.Decide(p.place, decision, result, failed); err != nil {
			return err
		}
		p.State, p.Lost, p.Decision, p.Result, p.Err, p.action = journal.Ended, false, decision, result, failed, actionAnswer
	}
	if d.exact || decision != journal.Skipped {
		return nil
	}
	r.add(&entry{Call: journal.Call{Tool: made.Tool, Arguments: made.Arguments, State: journal.Ended, Decision: decision, Err: failed}, action: actionAnswer})
	return w.Skip(made.Tool, made.Definition, made.Arguments, failed)
}

// firstDue returns the first outstanding call, nil if there is none. mu must be held.
func (r *replayer) firstDue() (first *entry) {
	for _, list := range r.known {
		for _, p := range list {
			if !p.Optional && !p.requested && (first == nil || p.place < first.place) {
				first = p
			}
		}
	}
	return first
}

// diverge returns the error for a program that deviates from its journal; nil if no call is outstanding.
func (r *replayer) diverge(made *toolcall.Attempt) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.firstDue()
	if r.diverged == nil && first != nil {
		what := fmt.Sprintf("was %s(%.8s), now %s(%.8s)", first.Tool, first.Arguments, made.Tool, made.Arguments)
		if first.Tool == made.Tool {
			what = fmt.Sprintf("%s has other arguments (digest was %.8s, now %.8s)", made.Tool, first.Arguments, made.Arguments)
		}
		r.diverged = &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("call %d differs from the journal of %s: %s", r.answered+1, r.resumes, what),
			Hint: "the program depends on time, chance or files: make it the same each time, give new code with resume, or run it without"}
	}
	switch {
	case r.diverged != nil:
		return r.diverged
	case r.remaining > 0:
		return errors.New("no outstanding call") // unreachable: calls wait only for outstanding ones
	}
	return nil
}

// maxUnasked is the maximum number of calls that a note names.
const maxUnasked = 5

// Notes describes for a model how the calls of the resumed execution were used.
func (r *replayer) Notes() (notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.diverged != nil {
		notes = append(notes, r.diverged.Error())
	}
	if r.answered > 0 {
		notes = append(notes, fmt.Sprintf("%s answered from the journal of %s", formatCalls(r.answered), r.resumes))
	}
	if names := r.undecidedNames(); names != "" {
		notes = append(notes, "may have been done in "+r.resumes+", and not asked for again: "+names)
	}
	var unasked []*entry
	for _, list := range r.known {
		for _, p := range list {
			if p.action == actionAnswer && !p.requested && !uncertain(p.Call) {
				unasked = append(unasked, p)
			}
		}
	}
	if len(unasked) == 0 || r.diverged != nil {
		return notes
	}
	return append(notes, fmt.Sprintf("%s of %s not asked for again, and not undone: %s", formatCalls(len(unasked)), r.resumes, namesInOrder(unasked)))
}

// undecidedNames lists the uncertain calls that the program has not made again. mu must be held.
func (r *replayer) undecidedNames() string {
	var list []*entry
	for _, p := range r.unresolved {
		if !p.requested && !p.replaced && uncertain(p.Call) && p.Decision == "" {
			list = append(list, p)
		}
	}
	return namesOf(list)
}

// namesInOrder lists the tools of the first calls, in the order of the journal.
func namesInOrder(list []*entry) string {
	slices.SortFunc(list, func(a, b *entry) int { return a.place - b.place })
	return namesOf(list)
}

// namesOf lists the tools of the first calls.
func namesOf(list []*entry) string {
	var names []string
	for _, p := range list[:min(len(list), maxUnasked)] {
		names = append(names, p.Tool.String())
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func formatCalls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}
