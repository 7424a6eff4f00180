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

// policies are the rules in force and the counters of their limits.
type policies struct {
	rules  atomic.Pointer[Rules]
	counts *policy.Counts
}

// Rules are the compiled policy settings.
type Rules struct {
	*policy.Policy
	// on reports whether any call may be refused or need approval.
	on bool
	// labeled holds the upstreams and plugins with labels, by id.
	labeled map[string]config.Upstream
}

// Compile compiles settings to rules. Apply puts them into force.
func (g *Guard) Compile(cfg *config.Config) (*Rules, error) {
	compiled, err := policy.New(cfg.Policy, g.policies.counts)
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	r := &Rules{Policy: compiled, on: cfg.Policy.On, labeled: map[string]config.Upstream{}}
	for _, up := range cfg.Labeled() {
		r.on, r.labeled[up.ID] = true, up
	}
	return r, nil
}

// Labels returns the labels of a tool, or of a method of an upstream, by its names in programs and upstream.
func (r *Rules) Labels(id tool.ID, wire string) []string {
	up, ok := r.labeled[id.Upstream]
	if !ok {
		return nil
	}
	return up.LabelsOf(wire, id.Name)
}

// subject returns the policy's view of a call to a tool, without the parts that depend on the single call.
func (g *Guard) subject(ctx context.Context, r *Rules, id tool.ID) *policy.Call {
	c := &policy.Call{Tool: id, Principal: tool.Principal(ctx), Groups: g.opts.Directory.Groups, Session: tool.Session(ctx), Remote: tool.Remote(ctx), Time: time.Now()}
	wire := id.Name
	if e, ok := g.Catalog.Lookup(id); ok {
		c.Annotations, wire = e.Annotations, e.Wire
	}
	c.Labels = r.Labels(id, wire)
	return c
}

// judge returns the verdict of the rules on a call.
func (g *Guard) judge(ctx context.Context, req tool.Call) toolcall.Verdict {
	r := g.policies.rules.Load()
	if !r.on {
		return toolcall.Verdict{Action: policy.Allow}
	}
	if tool.IsTaskMethod(req.Tool.Method()) { // the call that became the task was decided
		return toolcall.Verdict{Action: policy.Allow, Labels: resultLabels(r.Labels(req.Tool, req.Tool.Name))}
	}
	c := g.facts(ctx, r, req)
	return verdict(c, r.Decide(ctx, c))
}

// verdict makes a verdict of the decision of the rules.
func verdict(c *policy.Call, d policy.Decision) toolcall.Verdict {
	return toolcall.Verdict{Action: d.Action, Judged: true, Labels: resultLabels(c.Labels), Rule: d.Rule, Reason: d.Reason, Message: refusalMessage(c.Tool, d), Limited: d.Limited}
}

// facts returns the policy's complete view of a call.
func (g *Guard) facts(ctx context.Context, r *Rules, req tool.Call) *policy.Call {
	c := g.subject(ctx, r, req.Tool)
	c.Read = g.flows.labelsRead(ctx)
	c.Args = func() (any, error) { return g.upstreamArgs(ctx, req) }
	if running := toolcall.ExecutionOf(ctx); running != nil {
		c.Execution, c.Calls, c.Remote = running.Root, running.Trail.Counts, running.Remote
	} else if by := toolcall.ScopeOf(ctx).Run; by != "" {
		c.Execution, c.Calls = by, g.flows.session(trailKey(ctx), true).Counts
	}
	return c
}

// upstreamArgs returns the arguments as the upstream gets them: with tokens replaced by the values that it may get.
func (g *Guard) upstreamArgs(ctx context.Context, c tool.Call) (any, error) {
	args, err := g.opts.Privacy.Arguments(ctx, c)
	if err != nil {
		return nil, err
	}
	return expr.Decode(args)
}

// refusalMessage returns the text that a model reads about a refused call: the rule, and what to do.
func refusalMessage(id tool.ID, d policy.Decision) string {
	why := d.Message
	switch {
	case d.Limited && why == "":
		why = "its limit is used up: make fewer calls, or tell the user"
	case why == "":
		why = "do not try again or work around it: tell the user"
	}
	return fmt.Sprintf("policy refuses %s (%s): %s", id, ruleName(d.Rule), why)
}

// ruleName formats the name of a rule for a message.
func ruleName(rule string) string {
	if rule == "default" || rule == "flow" {
		return rule
	}
	return fmt.Sprintf("rule %q", rule)
}

// resultLabels returns the labels of a call's result: those of its tool without External, which is about arguments.
func resultLabels(labels []string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == policy.External })
}

// Isolates reports whether the rules demand a sandbox that no other program uses for a program of the caller.
func (g *Guard) Isolates(ctx context.Context, running *toolcall.Execution) bool {
	program := policy.Program{Principal: running.Principal, Groups: g.opts.Directory.Groups, Session: tool.Session(ctx), Remote: running.Remote, Time: time.Now()}
	for _, o := range g.ExecutionOrigins(ctx, running) {
		program.Read = append(program.Read, o.Label)
	}
	return g.policies.rules.Load().Isolates(ctx, program)
}

// ExplainPolicy returns the decision on a call of the caller without making it. It does not count towards limits.
func (g *Guard) ExplainPolicy(ctx context.Context, req tool.Call) (policy.Decision, error) {
	d, _, err := g.TracePolicy(ctx, req)
	return d, err
}

// TracePolicy is ExplainPolicy, with a step for each rule.
func (g *Guard) TracePolicy(ctx context.Context, req tool.Call) (policy.Decision, []policy.Step, error) {
	if _, err := g.Catalog.Find(ctx, req.Tool); err != nil && req.Tool.Method() == "tools/call" {
		return policy.Decision{}, nil, err
	}
	if len(req.Args) == 0 {
		req.Args = json.RawMessage("{}")
	}
	r := g.policies.rules.Load()
	c := g.subject(ctx, r, req.Tool)
	c.Args = func() (any, error) { return g.upstreamArgs(ctx, req) }
	d, steps := r.Trace(ctx, c)
	return d, steps, nil
}

// ExpectedAction returns the action for a tool's calls if it does not depend on their arguments; otherwise, and for unknown tools, Allow.
func (g *Guard) ExpectedAction(ctx context.Context, id tool.ID, known bool) policy.Action {
	r := g.policies.rules.Load()
	if !known || !r.on {
		return policy.Allow
	}
	return r.ExpectedAction(ctx, g.subject(ctx, r, id))
}

// AlwaysDenied reports whether the policy denies the caller all calls of a tool, or of a method of an upstream.
func (g *Guard) AlwaysDenied(ctx context.Context, id tool.ID) bool {
	return g.ExpectedAction(ctx, id, true) == policy.Deny
}

// Restricts reports whether any call may be refused.
func (g *Guard) Restricts() bool { return g.policies.rules.Load().on }

// ReasonDenied is the reason of a FoundHeld with a tool that the policy denies.
const ReasonDenied = "denied"

// PolicyLabel returns the text for an action in search results.
func PolicyLabel(a policy.Action) string {
	if a == policy.Allow {
		return ""
	}
	return string(a)
}
