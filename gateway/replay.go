package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/journal"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// madeCall is one call of a program, on its way down the chain.
type madeCall struct {
	tool tool.ID
	// definition and arguments are digests.
	definition, arguments string
	kept                  []byte // the arguments, where the journal keeps them
	left                  bool   // its journal knows of it
	replayed              bool   // it was answered from the journal
	doubt                 string // why it may have been done already, "" if it cannot have been

	decided func(verdict) // has its record say what becomes of it
}

type madeKey struct{}

// madeBy returns the call of a program that is made within ctx, nil if none is.
func madeBy(ctx context.Context) *madeCall {
	m, _ := ctx.Value(madeKey{}).(*madeCall)
	return m
}

func (g *Gateway) newMadeCall(call tool.Call) *madeCall {
	m := &madeCall{tool: call.Tool}
	if e, known := g.catalog.known(call.Tool); known {
		m.definition = e.digest()
	}
	args := compact(call.Args)
	if g.cfg.Load().Journal.Successes {
		m.kept = args
	}
	sum := sha256.Sum256(args)
	m.arguments = hex.EncodeToString(sum[:])
	return m
}

// replayed answers a call from the journal of the execution that is resumed, where it has been made already.
func (g *Gateway) replayed(next Handler) Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		run, made := runningOf(ctx), madeBy(ctx)
		if run == nil || made == nil || run.journal == nil {
			if err := g.strangers(ctx, run, call); err != nil {
				return tool.Result{}, err
			}
			return next(ctx, call)
		}
		past, err := run.replay.take(ctx, made)
		if err != nil {
			return tool.Result{}, err
		}
		if past != nil {
			if err := run.journal.Asked(past.place); err != nil {
				g.unjournaled(ctx, run, err)
			}
			if past.fate == answered {
				made.replayed = true
				g.taint(ctx, call, noted(g.labelsOf(g.policies.rules.Load(), call.Tool)))
				run.finished(g, past.Call)
				return past.answer()
			}
			made.doubt = g.doubt(past.Call, run.replay.resumes)
		}
		if err := g.strangers(ctx, run, call); err != nil {
			return tool.Result{}, err
		}
		result, err := next(ctx, call)
		if err != nil && !made.left {
			if err := run.journal.Refused(made.tool, made.definition, made.arguments, tool.AsError(err)); err != nil {
				g.unjournaled(ctx, run, err)
			}
		}
		return result, err
	}
}

// strangers refuses a call with tokens that an answer from the journal brought, or a workflow's log, and that mean nothing any more.
func (g *Gateway) strangers(ctx context.Context, run *running, call tool.Call) error {
	if run != nil && run.replay == nil && !run.unwaited || run == nil && unwaitedBy(ctx) == "" || !g.privacy.rules.Load().on {
		return nil
	}
	token := g.privacy.vault(ctx).Stranger(string(call.Args))
	if token == "" {
		return nil
	}
	from, hint := "before the gateway was started anew", "get it anew: start another run"
	if run != nil && run.replay != nil {
		from, hint = "the journal of "+run.replay.resumes, "get it anew: run the program without resume"
	}
	return &tool.Error{Kind: tool.Invalid, Message: "what " + token + " stands for is forgotten: it came from " + from, Hint: hint}
}

// journaled notes in the execution's journal that a call begins, and what it came to.
func (g *Gateway) journaled(next Handler) Handler {
	return func(ctx context.Context, call tool.Call) (tool.Result, error) {
		run, made := runningOf(ctx), madeBy(ctx)
		if run == nil || made == nil || run.journal == nil {
			return next(ctx, call)
		}
		number, err := run.journal.Begin(made.tool, made.definition, made.arguments, made.kept)
		if err != nil {
			g.unjournaled(ctx, run, err)
		}
		made.left = true
		result, err := next(ctx, call)
		ended := journal.Call{Tool: made.tool, State: journal.Ended, Result: result}
		if call.Tool.Method() == "tools/call" {
			ended.Result.Raw = nil // programs get what is made of it
		}
		if err != nil {
			ended.Err = tool.AsError(err)
		}
		if err := run.journal.End(number, ended.Result, ended.Err); err != nil {
			g.unjournaled(ctx, run, err)
		}
		run.finished(g, ended)
		return result, err
	}
}

// unjournaled says once that an execution cannot be resumed.
func (g *Gateway) unjournaled(ctx context.Context, run *running, err error) {
	run.unjournaled.Do(func() {
		g.log.ErrorContext(ctx, "journal cannot be written: the execution cannot be resumed", "execution", run.id, "error", err)
	})
}

// finished counts what it would be a pity to do again.
func (r *running) finished(g *Gateway, c journal.Call) {
	if c.Err == nil && !c.Result.IsError && !g.readOnly(c.Tool) {
		r.done.Add(1)
	}
}

func (g *Gateway) readOnly(id tool.ID) bool {
	if id.Method() != "tools/call" {
		return true
	}
	e, known := g.catalog.known(id)
	return known && e.Annotations.ReadOnly != nil && *e.Annotations.ReadOnly
}

// harmless reports whether a tool says that it can be called once more, and said so then.
func (g *Gateway) harmless(c journal.Call) bool {
	if g.readOnly(c.Tool) {
		return true
	}
	e, known := g.catalog.known(c.Tool)
	return known && e.digest() == c.Definition && e.Annotations.Idempotent != nil && *e.Annotations.Idempotent
}

// doubt says why a call may have been done already, "" if it cannot have been or does no harm.
func (g *Gateway) doubt(c journal.Call, resumes string) string {
	switch {
	case c.State == journal.Refused, g.harmless(c):
		return ""
	case c.Lost:
		return "it was done in " + resumes + ", and its result was too large to be kept"
	case c.State == journal.Begun:
		return resumes + " ended while it was under way: it may have been done"
	case c.Result.IsError || c.Err.Retryable || slices.Contains([]tool.Kind{tool.Failed, tool.Invalid, tool.NotFound}, c.Err.Kind):
		return ""
	}
	return "it failed in " + resumes + " in a way in which it may have been done"
}

// doubtRule is the rule of a verdict about a call that may have been done already.
const doubtRule = "resume"

// doubted has a person decide about a call that may have been done already, whatever the rules say but no.
func doubted(ctx context.Context, v verdict) verdict {
	made := madeBy(ctx)
	if made == nil || made.doubt == "" || v.action == policy.Deny {
		return v
	}
	v.action, v.rule = policy.Ask, strings.TrimPrefix(v.rule+", "+doubtRule, ", ")
	v.reason = strings.TrimSuffix(made.doubt+"; "+v.reason, "; ")
	return v
}

// fate is what becomes of a call that is in the journal of the execution before.
type fate int

const (
	answered fate = iota // as it was then
	again                // it is made again, by somebody's leave where it may have been done
)

// past is one of them.
type past struct {
	journal.Call
	place int // among those that the new journal carries, from 1
	fate  fate
}

func (p *past) answer() (tool.Result, error) {
	if p.Err != nil {
		return tool.Result{}, p.Err
	}
	return p.Result, nil
}

// fateOf decides about a call of an execution that ended with a fault, or "". A failure that the program went on after is
// part of how it came to where it was, and is told it again; the one that it ended with is worth another try.
func fateOf(c journal.Call, fault string) fate {
	if c.State != journal.Ended || c.Lost {
		return again
	}
	if c.Err == nil && !c.Result.IsError {
		return answered
	}
	message := c.Result.Text()
	if c.Err != nil {
		message = c.Err.Message
	}
	message = head(message, 200)
	if c.Last || message != "" && strings.Contains(fault, message) {
		return again
	}
	return answered
}

// replay is what the calls of a program are compared with. A nil one knows of none. It is safe for concurrent use.
type replay struct {
	resumes string
	same    bool // the program is the one that made them

	mu       sync.Mutex
	known    map[pastKey][]*past
	wanted   int           // answers that the program must ask for before it does anything new
	stirred  chan struct{} // closed when one of them is asked for
	answered int
	diverged *tool.Error
}

// pastKey is what calls are the same by.
type pastKey struct {
	tool      tool.ID
	arguments string
}

// replayPatience is how long a call that the journal does not know waits for those that it does, while nothing moves.
const replayPatience = time.Second

// newReplay makes one of the calls of a journal, and says what the new one carries.
func newReplay(c *journal.Contents, fault string, same bool) (*replay, []journal.Call) {
	r := &replay{resumes: c.ID, same: same, known: map[pastKey][]*past{}, stirred: make(chan struct{})}
	carried := slices.Clone(c.Calls)
	for i := range carried {
		p := &past{Call: carried[i], place: i + 1, fate: fateOf(carried[i], fault)}
		if p.fate == answered && same && (p.Asked || !p.Optional) {
			r.wanted++
		} else {
			p.Optional, carried[i].Optional = true, true
		}
		key := pastKey{p.Tool, p.Arguments}
		r.known[key] = append(r.known[key], p)
	}
	return r, carried
}

// take returns what a call was before, nil for a new one. Of several that are the same those that have an answer come
// first, in their order. The error is for a new one where an old one was due.
func (r *replay) take(ctx context.Context, made *madeCall) (*past, error) {
	if r == nil {
		return nil, nil
	}
	patience := time.NewTimer(replayPatience)
	defer patience.Stop()
	for {
		found, stirred, err := r.look(pastKey{made.tool, made.arguments}, made)
		if found != nil || stirred == nil {
			return found, err
		}
		select {
		case <-stirred:
			patience.Reset(replayPatience)
		case <-patience.C:
			return nil, r.diverge(made)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// look finds a call. One that is not there has to wait for stirred, or if that is nil for nothing.
func (r *replay) look(key pastKey, made *madeCall) (found *past, stirred <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.known[key]
	if len(list) > 0 {
		at := max(0, slices.IndexFunc(list, func(p *past) bool { return p.fate == answered }))
		found, r.known[key] = list[at], slices.Delete(slices.Clone(list), at, at+1)
		if found.fate == answered {
			r.answered++
		}
		if !found.Optional {
			r.wanted--
		}
		close(r.stirred)
		r.stirred = make(chan struct{})
		return found, nil, nil
	}
	if r.diverged != nil && r.wanted > 0 {
		return nil, nil, r.diverged
	}
	if r.wanted > 0 {
		return nil, r.stirred, nil
	}
	return nil, nil, nil
}

// due returns the first call that the program must ask for and has not, nil if there is none. It is called with mu held.
func (r *replay) due() (first *past) {
	for _, list := range r.known {
		for _, p := range list {
			if !p.Optional && (first == nil || p.place < first.place) {
				first = p
			}
		}
	}
	return first
}

// diverge says that a program does something else than it did.
func (r *replay) diverge(made *madeCall) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := r.due(); r.diverged == nil && first != nil {
		what := fmt.Sprintf("was %s(%.8s), now %s(%.8s)", first.Tool, first.Arguments, made.tool, made.arguments)
		if first.Tool == made.tool {
			what = fmt.Sprintf("%s has other arguments (digest was %.8s, now %.8s)", made.tool, first.Arguments, made.arguments)
		}
		r.diverged = &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("call %d differs from the journal of %s: %s", r.answered+1, r.resumes, what),
			Hint: "the program depends on time, chance or files: make it the same each time, give new code with resume, or run it without"}
	}
	if r.diverged == nil {
		return errors.New("diverged from nothing") // cannot be: it waits only for what is due
	}
	return r.diverged
}

// maxUnasked is how many calls are named that were not asked for.
const maxUnasked = 5

// notes say what became of the calls of before.
func (r *replay) notes() (notes []string) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.diverged != nil {
		notes = append(notes, r.diverged.Error())
	}
	if r.answered > 0 {
		notes = append(notes, fmt.Sprintf("%s answered from the journal of %s", calls(r.answered), r.resumes))
	}
	var unasked []*past
	for _, list := range r.known {
		for _, p := range list {
			if p.fate == answered {
				unasked = append(unasked, p)
			}
		}
	}
	if len(unasked) == 0 || r.diverged != nil {
		return notes
	}
	slices.SortFunc(unasked, func(a, b *past) int { return a.place - b.place })
	var names []string
	for _, p := range unasked[:min(len(unasked), maxUnasked)] {
		names = append(names, p.Tool.String())
	}
	if more := len(unasked) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return append(notes, fmt.Sprintf("%s of %s not asked for again, and not undone: %s", calls(len(unasked)), r.resumes, strings.Join(names, ", ")))
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}
