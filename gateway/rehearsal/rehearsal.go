// Package rehearsal decides again about calls on record, by rules that are not in force yet, to show what an edit of the policy would
// change. It makes no calls, and counts nothing.
package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/gateway/catalog"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/internal/expr"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

const (
	// Span is how far back calls are decided again.
	Span = 24 * time.Hour
	// maxCalls bounds the calls, maxTime the time for all decisions.
	maxCalls, maxTime = 10_000, 20 * time.Second
	// maxChanges bounds the lines of the result.
	maxChanges = 200
)

// Records are the calls on record.
type Records interface {
	Records(ctx context.Context) iter.Seq2[history.Record, error]
	JournalCalls(ctx context.Context, id string, after, limit int) (history.JournaledCalls, error)
	AuditLog(ctx context.Context, filter auditor.Filter) (auditor.Page, error)
}

// Options are the dependencies of a rehearsal.
type Options struct {
	Records Records
	// Lookup returns the definition of a tool that can be called now.
	Lookup func(id tool.ID) (*catalog.Entry, bool)
	// Groups returns the groups that principals have now.
	Groups policy.Groups
}

// Unknown is the action for a call that cannot be decided again, as a rule depends on something that is not on record.
const Unknown policy.Action = "unknown"

// Outcome is what rules decide about the calls of a span.
type Outcome struct {
	// Since is the time of the first call that could be among them.
	Since time.Time
	// Calls is how many were decided, Allowed, Refused, Asked and Unknown how.
	Calls, Allowed, Refused, Asked, Unknown int
	// Differ is how many are decided differently from when they were made.
	Differ int
	// Changes are the calls that differ, or are not allowed, by tool, principal and rule: the ones that differ first. More is how many
	// lines are left out.
	Changes []Change
	More    int
	// Notes say what is missing.
	Notes []string
}

// Change are calls of a tool by a principal that are decided in the same way.
type Change struct {
	Tool      tool.ID
	Principal string
	// Was is how they were decided, Now how they would be, by the rule and for the reason.
	Was, Now     policy.Action
	Rule, Reason string
	Calls        int
	// Last is when the last one was made, Execution by which program, "" for none.
	Last      time.Time
	Execution string
}

// Differs reports whether they would be decided in another way.
func (c Change) Differs() bool { return c.Now != Unknown && c.Was != c.Now }

// Run decides again about the calls of all principals since a time, by rules; the caller is an operator. Errors are *tool.Error.
func Run(ctx context.Context, o Options, rules *guard.Rules, since time.Time) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	r := &run{Options: o, rules: rules, judge: rules.WithFreshCounts(), groups: map[Change]*Change{}, Outcome: Outcome{Since: since}}
	all, err := r.collect(ctx)
	if err != nil {
		return Outcome{}, err
	}
	for i, c := range all {
		if ctx.Err() != nil {
			r.note(fmt.Sprintf("It took too long: the last %d calls were not decided again.", len(all)-i))
			break
		}
		r.decide(ctx, c)
	}
	r.finish()
	return r.Outcome, nil
}

// run is the state of one rehearsal.
type run struct {
	Options
	Outcome
	rules  *guard.Rules
	judge  *policy.Policy
	groups map[Change]*Change
}

func (r *run) note(text string) { r.Notes = append(r.Notes, text) }

// errUnrecorded is the error for an argument of a decision that is not on record.
var errUnrecorded = errors.New("it is not on record")

// decide decides again about one call.
func (r *run) decide(ctx context.Context, c recorded) {
	missing := false
	subject := c.Call
	subject.Args = func() (any, error) {
		args, ok := c.args(ctx, r.Records)
		if !ok {
			missing = true
			return nil, errUnrecorded
		}
		return expr.Decode(args)
	}
	subject.Groups = func(principal string) ([]string, bool) {
		if r.Groups == nil {
			return nil, true
		}
		groups, known := r.Groups(principal)
		missing = missing || !known
		return groups, known
	}
	wire := c.Tool.Name
	if e, ok := r.Lookup(c.Tool); ok {
		subject.Annotations, wire = e.Annotations, e.Wire
	}
	subject.Labels = r.rules.Labels(c.Tool, wire)
	d := r.judge.Decide(ctx, &subject)
	if ctx.Err() != nil {
		return
	}
	if missing {
		d = policy.Decision{Action: Unknown, Rule: d.Rule, Reason: "a rule depends on arguments or groups that are not on record"}
	}
	r.add(c, d)
}

// add counts a decision.
func (r *run) add(c recorded, d policy.Decision) {
	r.Calls++
	switch d.Action {
	case policy.Allow:
		r.Allowed++
	case policy.Deny:
		r.Refused++
	case policy.Ask:
		r.Asked++
	default:
		r.Unknown++
	}
	key := Change{Tool: c.Tool, Principal: c.Principal, Was: c.was, Now: d.Action, Rule: d.Rule, Reason: d.Reason}
	if key.Differs() {
		r.Differ++
	} else if d.Action == policy.Allow {
		return
	}
	group := r.groups[key]
	if group == nil {
		group = new(key)
		r.groups[key] = group
	}
	group.Calls, group.Last, group.Execution = group.Calls+1, c.Time, c.Execution
}

// finish sorts the changes.
func (r *run) finish() {
	for _, c := range r.groups {
		r.Changes = append(r.Changes, *c)
	}
	rank := func(c Change) int {
		at := slices.Index([]policy.Action{policy.Deny, policy.Ask, policy.Allow, Unknown}, c.Now)
		if !c.Differs() && c.Now != Unknown {
			at += 10
		}
		return at
	}
	slices.SortFunc(r.Changes, func(a, b Change) int {
		return cmp.Or(rank(a)-rank(b), b.Calls-a.Calls, cmp.Compare(a.Tool.String(), b.Tool.String()), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Was, b.Was), cmp.Compare(a.Reason, b.Reason))
	})
	if len(r.Changes) > maxChanges {
		r.Changes, r.More = r.Changes[:maxChanges], len(r.Changes)-maxChanges
	}
}
