package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/expr"
	"sallyport/internal/tool"
)

// ExpectedAction returns the mildest action possible for a tool's calls, whatever their arguments and earlier calls: Deny
// if they are always denied, Ask if all need approval, else Allow. Limits are ignored.
func (p *Policy) ExpectedAction(ctx context.Context, c *Call) Action {
	if !p.set.On {
		return Allow
	}
	name, vars := c.name(), variables(c, nil)
	best := Deny
	for i := range p.rules {
		r := &p.rules[i]
		if r.Then == Limit || !r.covers(name) {
			continue
		}
		sure, holds := r.predict(ctx, vars)
		if !holds {
			continue
		}
		best = milder(best, r.Then)
		if sure {
			return best
		}
	}
	return milder(best, p.defaultDecision(c).Action)
}

// predict reports whether the rule can match a call of this tool, and whether it always does.
func (r *compiled) predict(ctx context.Context, vars expr.Vars) (sure, can bool) {
	if r.when == nil {
		return true, true
	}
	if slices.ContainsFunc([]string{"args", "calls", "read", "time", "execution", "session"}, r.when.Uses) {
		return false, true
	}
	holds, err := r.holds(ctx, vars)
	if err != nil {
		holds = r.Then != Allow
	}
	return true, holds
}

// milder returns the more permissive action.
func milder(a, b Action) Action {
	order := []Action{Deny, Ask, Allow}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// testProblems finds tests that cannot be run.
func (p *Policy) testProblems() (problems []Problem) {
	for i, t := range p.set.Tests {
		wrong := func(key, message string) {
			problems = append(problems, Problem{Rule: i, InTests: true, Key: key, Item: -1, Message: message})
		}
		if _, err := tool.ParseID(t.Call); err != nil {
			wrong("call", fmt.Sprintf("%.60q is not a tool id; write upstream.tool", t.Call))
		}
		if !slices.Contains([]Action{Allow, Deny, Ask}, t.Expect) {
			wrong("expect", "a test needs expect: allow, deny or ask")
		}
		if t.Rule != "" && !p.hasRule(t.Rule) {
			wrong("rule", fmt.Sprintf("there is no rule %.40q", t.Rule))
		}
		for name := range t.Annotations {
			if !slices.Contains([]string{"readOnly", "destructive", "idempotent", "openWorld"}, name) {
				wrong("annotations", fmt.Sprintf("there is no annotation %.40q; there are readOnly, destructive, idempotent, openWorld", name))
			}
		}
	}
	return problems
}

func (p *Policy) hasRule(name string) bool {
	return slices.Contains([]string{"default", "read-only", "flow"}, name) || slices.ContainsFunc(p.rules, func(c compiled) bool { return c.Name == name })
}

// Run decides about the example, with its own counts. Labels are those of the tool in the settings, used if the
// example has none.
func (p *Policy) Run(ctx context.Context, t Test, labels []string) (Decision, error) {
	id, err := tool.ParseID(t.Call)
	if err != nil {
		return Decision{}, err
	}
	id.Upstream = tool.Identifier(id.Upstream)
	if t.Labels != nil {
		labels = t.Labels
	}
	return p.WithFreshCounts().Decide(ctx, &Call{
		Tool: id, Annotations: t.annotations(), Args: t.args, Principal: t.Principal, Groups: func(string) ([]string, bool) { return t.Groups, true }, Session: "test", Execution: "test", Remote: t.Remote,
		Labels: labels, Read: t.Read, Calls: func() map[string]int64 { return t.Calls }, Time: time.Now(),
	}), nil
}

// args returns the example's decoded arguments.
func (t Test) args() (any, error) {
	if t.Args == nil {
		return map[string]any{}, nil
	}
	return expr.Decode(t.Args)
}

func (t Test) annotations() (a tool.Annotations) {
	for name, at := range map[string]**bool{"readOnly": &a.ReadOnly, "destructive": &a.Destructive, "idempotent": &a.Idempotent, "openWorld": &a.OpenWorld} {
		if hint, ok := t.Annotations[name]; ok {
			*at = &hint
		}
	}
	return a
}

// Failure returns what is wrong with the decision, "" if it is as expected.
func (t Test) Failure(d Decision) string {
	switch {
	case d.Action != t.Expect:
		return fmt.Sprintf("expected %s, but it is %s: %s", t.Expect, d.Action, d.Reason)
	case t.Rule != "" && d.Rule != t.Rule:
		return fmt.Sprintf("expected rule %q to decide, but it is %q: %s", t.Rule, d.Rule, strings.TrimSpace(d.Reason))
	}
	return ""
}
