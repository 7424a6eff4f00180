package policy

import (
	"context"
	"path"
	"slices"
	"strings"
)

// Shadow is a rule that can never decide.
type Shadow struct {
	// Rule is the index of the rule, By that of the rule that decides instead; they are equal if its condition is
	// never true.
	Rule, By int
}

// Shadows returns the rules that can never decide, or count, since rules above them decide all their calls. It
// reports only certain cases: conditions must be equal or constant.
func (p *Policy) Shadows(ctx context.Context) (all []Shadow) {
	for i := range p.rules {
		if by, ok := p.shadowOf(ctx, i); ok {
			all = append(all, Shadow{Rule: i, By: by})
		}
	}
	return all
}

// shadowOf finds the rule that shadows another; of several that do so together, the first.
func (p *Policy) shadowOf(ctx context.Context, at int) (by int, ok bool) {
	r := &p.rules[at]
	if holds, known := r.constant(ctx); known && !holds {
		return at, true
	}
	by = -1
	for _, g := range r.patterns() {
		i := slices.IndexFunc(p.rules[:at], func(above compiled) bool { return above.preempts(ctx, r) && above.contains(g) })
		if i < 0 {
			return 0, false
		}
		if by < 0 {
			by = i
		}
	}
	return by, by >= 0
}

// preempts reports whether the rule decides all calls of its tools that another one matches.
func (r *compiled) preempts(ctx context.Context, other *compiled) bool {
	if r.Then == Limit {
		return false
	}
	if holds, known := r.constant(ctx); known {
		return holds
	}
	return r.When == other.When && (r.Then != Allow || other.Then == Allow) // an error is a match except in allow
}

// constant returns the value of the condition, if it is the same for all calls.
func (r *compiled) constant(ctx context.Context) (holds, known bool) {
	if r.when == nil {
		return true, true
	}
	if len(r.when.Variables()) == 0 {
		holds, err := r.holds(ctx, variables(&Call{}, nil))
		return holds || err != nil && r.Then != Allow, true
	}
	return false, false
}

// patterns are the globs of the rule's tools.
func (r *compiled) patterns() []string {
	if r.globs == nil {
		return []string{"*"}
	}
	return r.globs
}

// contains reports whether the rule certainly applies to all tools that a glob matches.
func (r *compiled) contains(g string) bool {
	return slices.ContainsFunc(r.patterns(), func(mine string) bool {
		if mine == "*" || mine == g {
			return true
		}
		if strings.ContainsAny(mine+g, `?[]\`) {
			return false
		}
		ok, _ := path.Match(mine, g) // a star of g is taken by a star
		return ok
	})
}
