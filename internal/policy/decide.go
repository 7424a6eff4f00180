package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/expr"
)

// Decide returns the decision about a call. A call that is allowed or asked about is counted in the matching limits.
// An expression that cannot be evaluated (a missing key, a wrong type, a duplicate argument) counts as true in a rule
// that denies, asks or limits, and as false in one that allows.
func (p *Policy) Decide(ctx context.Context, c *Call) Decision {
	v, limits, knows := p.search(ctx, c)
	v = p.flow(c, v, knows)
	if v.Action == Deny {
		return v
	}
	full, err := p.counts.take(ctx, c, limits)
	switch {
	case err != nil:
		return full.uncountedDecision()
	case full != nil:
		return full.limitDecision()
	}
	return v
}

// WithFreshCounts returns the policy with its own empty counts, for decisions about calls that are not made.
func (p *Policy) WithFreshCounts() *Policy {
	alone := *p
	alone.counts = NewCounts(nil)
	return &alone
}

// search finds the rule that decides, and the limits before it. knows means that the rule uses the labels of what was
// read.
func (p *Policy) search(ctx context.Context, c *Call) (v Decision, limits []charge, knows bool) {
	if !p.set.On {
		return Decision{Action: Allow}, nil, false
	}
	name, vars, bound := c.name(), expr.Vars{}, false
	for i := range p.rules {
		r := &p.rules[i]
		if !r.covers(name) {
			continue
		}
		if !bound && (r.when != nil || r.cost != nil) {
			vars, bound = variables(c, p.ruleKeys(name)), true
		}
		holds, err := r.holds(ctx, vars)
		if err != nil {
			holds = r.Then != Allow
		}
		switch {
		case !holds:
		case r.Then == Limit:
			limits = append(limits, charge{r, r.callCost(ctx, vars)})
		default:
			return r.decision(err), limits, r.when != nil && r.when.Uses("read")
		}
	}
	return p.defaultDecision(c), limits, false
}

// defaultDecision returns the decision for a call that no rule decides.
func (p *Policy) defaultDecision(c *Call) Decision {
	if c.ReadsOnly() {
		return Decision{Action: Allow, Rule: "read-only", Reason: "it only reads, and no rule says otherwise"}
	}
	then := p.set.Default
	if then == "" {
		then = Ask
	}
	if c.Annotations.Destructive != nil && *c.Annotations.Destructive {
		return Decision{Action: then, Rule: "default", Reason: "the upstream says that it destroys, and no rule decides"}
	}
	return Decision{Action: then, Rule: "default", Reason: "the upstream does not say that it only reads, and no rule decides"}
}

// decision returns the rule's decision. err is the evaluation error because of which it is taken to match.
func (r *compiled) decision(err error) Decision {
	reason := fmt.Sprintf("rule %q", r.Name)
	if err != nil {
		reason = fmt.Sprintf("rule %q could not be evaluated (%s), and counts as matching", r.Name, err)
	}
	return Decision{Action: r.Then, Rule: r.Name, Reason: reason, Message: r.Message}
}

// callCost returns the cost of a call. A cost that cannot be evaluated, or is negative, exceeds every limit.
func (r *compiled) callCost(ctx context.Context, vars expr.Vars) int64 {
	if r.cost == nil {
		return 1
	}
	out, err := r.cost.Eval(ctx, vars)
	if price, ok := out.(int64); ok && err == nil && price >= 0 {
		return price
	}
	return r.limit.most + 1
}

// limitDecision returns the decision when the rule's limit is used up.
func (r *compiled) limitDecision() Decision {
	what := fmt.Sprintf("the limit of %d per %s", r.Limit.Calls, r.Limit.Per)
	return Decision{Action: Deny, Rule: r.Name, Reason: fmt.Sprintf("rule %q: %s is used up, or this call exceeds what is left", r.Name, what), Message: r.Message, Limited: true}
}

// uncountedDecision returns the decision when the rule's limit cannot be counted.
func (r *compiled) uncountedDecision() Decision {
	return Decision{
		Action: Deny, Rule: r.Name, Reason: fmt.Sprintf("rule %q: the calls of its limit cannot be counted, as the store does not answer", r.Name),
		Message: "the store of the limit does not answer: try again later", Limited: true,
	}
}

// flow restricts a call that could send private data outside at the request of an untrusted text. A rule that allows
// it and uses the labels of what was read takes precedence.
func (p *Policy) flow(c *Call, v Decision, knows bool) Decision {
	if p.set.Flow == FlowOff || v.Action == Deny || knows && v.Action == Allow || !Trifecta(c.Labels, c.Read) {
		return v
	}
	reason := "untrusted and private data was read, and this call can carry data outside"
	if v.Action == Ask { // an approval for that rule does not cover the flow
		reason += "; besides, " + v.Reason
	}
	if p.set.Flow == FlowDeny {
		return Decision{Action: Deny, Rule: "flow", Reason: reason, Message: "this program or session has read untrusted and private data, and may no longer send data outside"}
	}
	return Decision{Action: Ask, Rule: "flow", Reason: reason}
}

// Trifecta reports whether a tool with these labels must not be called after reading data with the labels in read.
func Trifecta(labels, read []string) bool {
	return slices.Contains(labels, External) && slices.Contains(read, Private) && slices.Contains(read, Untrusted)
}

// variables returns the variables of a call; expensive ones are computed on first use.
func variables(c *Call, names spellings) expr.Vars {
	annotations := map[string]bool{}
	for name, hint := range map[string]*bool{"readOnly": c.Annotations.ReadOnly, "destructive": c.Annotations.Destructive, "idempotent": c.Annotations.Idempotent, "openWorld": c.Annotations.OpenWorld} {
		if hint != nil {
			annotations[name] = *hint
		}
	}
	return expr.Bind(map[string]any{
		"upstream": c.Tool.Upstream, "tool": strings.ReplaceAll(c.Tool.Name, "/", "."), "method": c.Tool.Method(), "annotations": annotations,
		"args": func() (any, error) { return c.arguments(names) }, "calls": c.counts,
		"principal": c.Principal, "groups": c.Groups.value(c.Principal), "session": c.Session, "execution": c.Execution, "remote": c.Remote,
		"labels": c.Labels, "read": c.Read, "time": c.Time,
	})
}

// arguments returns the call's arguments.
func (c *Call) arguments(names spellings) (any, error) {
	if c.Args == nil {
		return map[string]any{}, nil
	}
	args, err := c.Args()
	if _, ok := args.(map[string]any); !ok && err == nil {
		return nil, errors.New("the arguments are not an object")
	}
	if err != nil {
		return nil, err
	}
	return args, names.check(args)
}

func (c *Call) counts() (any, error) {
	if c.Calls == nil {
		return map[string]int64{}, nil
	}
	return c.Calls(), nil
}
