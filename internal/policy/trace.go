package policy

import (
	"context"

	"sallyport/internal/expr"
)

// Match is what a rule has to do with a call.
type Match string

// The matches.
const (
	// OtherTools: the rule is about other tools.
	OtherTools Match = "other tools"
	// Unmet: its condition is false.
	Unmet Match = "condition is false"
	// Counted: the call counts towards its limit.
	Counted Match = "counts"
	// Decides: it is the first rule that matches, and decides, unless a limit or the flow of data does.
	Decides Match = "decides"
	// NotReached: a rule above it decides.
	NotReached Match = "not reached"
)

// Step is what one rule has to do with a call.
type Step struct {
	Match Match
	// Problem says why its condition could not be evaluated, "" if it was.
	Problem string
}

// Trace returns the decision about a call, without counting it, and a step for each rule. It may get the arguments twice.
func (p *Policy) Trace(ctx context.Context, c *Call) (Decision, []Step) {
	steps, decided, bound := make([]Step, len(p.rules)), !p.set.On, false
	var vars expr.Vars
	for i := range p.rules {
		r := &p.rules[i]
		switch {
		case decided:
			steps[i].Match = NotReached
			continue
		case !r.covers(c.name()):
			steps[i].Match = OtherTools
			continue
		case r.when != nil && !bound:
			vars, bound = variables(c, p.ruleKeys(c.name())), true
		}
		steps[i] = r.step(ctx, vars)
		decided = steps[i].Match == Decides
	}
	return p.WithFreshCounts().Decide(ctx, c), steps
}

// step is what a rule that is about the tool has to do with a call.
func (r *compiled) step(ctx context.Context, vars expr.Vars) (s Step) {
	holds, err := r.holds(ctx, vars)
	if err != nil {
		holds, s.Problem = r.Then != Allow, err.Error()
	}
	switch {
	case !holds:
		s.Match = Unmet
	case r.Then == Limit:
		s.Match = Counted
	default:
		s.Match = Decides
	}
	return s
}
