package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/expr"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// policies are the rules in force, and what their limits have counted.
type policies struct {
	rules  atomic.Pointer[Rules]
	counts *policy.Counts
}

// Rules are the settings, compiled.
type Rules struct {
	*policy.Policy
	// on: some call may be refused, or asked about.
	on bool
	// labeled are the upstreams that have labels, by id.
	labeled map[string]config.Upstream
}

// Compile makes rules of settings. Apply brings them into force.
func (g *Guard) Compile(cfg *config.Config) (*Rules, error) {
	compiled, err := policy.New(cfg.Policy, g.policies.counts)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	r := &Rules{Policy: compiled, on: cfg.Policy.On || cfg.Labeled(), labeled: map[string]config.Upstream{}}
	for _, up := range cfg.Upstreams {
		if len(up.Labels) > 0 || len(up.ToolLabels) > 0 {
			r.labeled[up.ID] = up
		}
	}
	return r, nil
}

// labels are those of a tool, or of a method of an upstream.
func (r *Rules) labels(id tool.ID, wire string) []string {
	up, ok := r.labeled[id.Upstream]
	if !ok {
		return nil
	}
	return up.LabelsOf(wire, id.Name)
}

// subject is a call as the policy sees it, but for what is known of this call only.
func (g *Guard) subject(ctx context.Context, r *Rules, id tool.ID) *policy.Call {
	c := &policy.Call{Tool: id, Principal: tool.Principal(ctx), Session: tool.Session(ctx), Remote: tool.Remote(ctx), Time: time.Now()}
	wire := id.Name
	if e, ok := g.Catalog.Known(id); ok {
		c.Annotations, wire = e.Annotations, e.Wire
	}
	c.Labels = r.labels(id, wire)
	return c
}

// judge says what the rules of the settings say of a call.
func (g *Guard) judge(ctx context.Context, req tool.Call) toolcall.Verdict {
	r := g.policies.rules.Load()
	if !r.on {
		return toolcall.Verdict{Action: policy.Allow}
	}
	c := g.facts(ctx, r, req)
	d := r.Decide(ctx, c)
	return toolcall.Verdict{Action: d.Action, Judged: true, Labels: noted(c.Labels), Rule: d.Rule, Reason: d.Reason, Message: refusedBy(req.Tool, d), Limited: d.Limited}
}

// facts are all that the policy sees of a call.
func (g *Guard) facts(ctx context.Context, r *Rules, req tool.Call) *policy.Call {
	c := g.subject(ctx, r, req.Tool)
	c.Read = g.flows.readSoFar(ctx)
	c.Args = func() (any, error) { return g.seenByUpstream(ctx, req) }
	if running := toolcall.ExecutionOf(ctx); running != nil {
		c.Execution, c.Calls, c.Remote = running.Root, running.Trail.Counts, running.Remote
	} else if by := toolcall.ScopeOf(ctx).Run; by != "" {
		c.Execution, c.Calls = by, g.flows.session(trailKey(ctx), true).Counts
	}
	return c
}

// seenByUpstream are the arguments as the upstream would get them: with values in place of tokens, where it gets them.
func (g *Guard) seenByUpstream(ctx context.Context, c tool.Call) (any, error) {
	args, err := g.opts.Privacy.Arguments(ctx, c)
	if err != nil {
		return nil, err
	}
	return expr.Decode(args)
}

// refusedBy is what a model reads of a call that is refused: by which rule, and what to do.
func refusedBy(id tool.ID, d policy.Decision) string {
	why := d.Message
	switch {
	case d.Limited && why == "":
		why = "its limit is used up: make fewer calls, or tell the user"
	case why == "":
		why = "do not try again or work around it: tell the user"
	}
	return fmt.Sprintf("policy refuses %s (%s): %s", id, ruleName(d.Rule), why)
}

// ruleName names a rule in a text.
func ruleName(rule string) string {
	if rule == "default" || rule == "flow" {
		return rule
	}
	return fmt.Sprintf("rule %q", rule)
}

// noted are the labels that a call's result has: those of its tool, without what is said of its arguments.
func noted(labels []string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == policy.External })
}

// PolicyWhy returns the decision about a call of the caller without making it. No limit counts it.
func (g *Guard) PolicyWhy(ctx context.Context, req tool.Call) (policy.Decision, error) {
	if _, err := g.Catalog.Find(ctx, req.Tool); err != nil && req.Tool.Method() == "tools/call" {
		return policy.Decision{}, err
	}
	if len(req.Args) == 0 {
		req.Args = json.RawMessage("{}")
	}
	r := g.policies.rules.Load()
	c := g.subject(ctx, r, req.Tool)
	c.Args = func() (any, error) { return g.seenByUpstream(ctx, req) }
	return r.Uncounted().Decide(ctx, c), nil
}

// Expected is what becomes of a tool's calls, whatever their arguments; Allow where that cannot be said, and for what is not known.
func (g *Guard) Expected(ctx context.Context, id tool.ID, known bool) policy.Action {
	r := g.policies.rules.Load()
	if !known || !r.on {
		return policy.Allow
	}
	return r.Expected(ctx, g.subject(ctx, r, id))
}

// AlwaysDenied reports whether all calls of a tool, or of a method of an upstream, are refused to the caller.
func (g *Guard) AlwaysDenied(ctx context.Context, id tool.ID) bool {
	return g.Expected(ctx, id, true) == policy.Deny
}

// ReasonDenied is that of a FoundHeld that the policy refuses.
const ReasonDenied = "denied"

// PolicyWord is what a search says of an action.
func PolicyWord(a policy.Action) string {
	if a == policy.Allow {
		return ""
	}
	return string(a)
}
