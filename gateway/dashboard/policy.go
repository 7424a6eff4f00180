package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/gateway/rehearsal"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Rules decide about calls.
type Rules interface {
	// TracePolicy decides about a call of the caller without making it, with a step for each rule.
	TracePolicy(ctx context.Context, call tool.Call) (policy.Decision, []policy.Step, error)
}

const policyPath = "/ui/policy"

// policyPages show the rules, try them, and edit them.
type policyPages struct{ editPages }

// PolicyPage shows the rules in force.
type PolicyPage struct {
	On, MayEdit            bool
	Default, Flow, Isolate string
	Rules                  []PolicyRule
	// Tests is how many tests the policy has.
	Tests int
	// Known are tools that can be tried.
	Known []string
	Try   PolicyTry
}

// PolicyRule is a rule, with what it has to do with the call that was tried.
type PolicyRule struct {
	policy.Rule
	Number int
	// Effect is its action in words, Tone how it looks.
	Effect, Tone string
	// Match and Problem are of the call that was tried, "" without one.
	Match, Problem string
}

// PolicyTry is the form for a call, and what is decided about it.
type PolicyTry struct {
	Tool, Args, Principal string
	// Problem says why nothing was decided, Hint how to fix that.
	Problem, Hint string
	// Effect is the decision in words, "" for none, Tone how it looks.
	Effect, Tone string
	Decision     policy.Decision
}

// maxKnown is the maximum number of tools that the form proposes.
const maxKnown = 500

// effects are the actions of rules in words, and how they look.
var effects = map[policy.Action][2]string{
	policy.Allow: {"allowed", "good"}, policy.Ask: {"needs approval", "warn"}, policy.Deny: {"refused", "bad"}, policy.Limit: {"limited", "calm"}, rehearsal.Unknown: {"cannot be told", "calm"},
}

// effect is an action in words.
func effect(a policy.Action) string { return effects[a][0] }

func (d policyPages) settings() policy.Settings {
	if d.opts.Policy == nil {
		return policy.Settings{}
	}
	return d.opts.Policy()
}

// show shows the rules in force, with the form for a call.
func (d policyPages) show(r *request) (any, error) {
	return d.page(r, PolicyTry{Tool: sanitize.Line(r.URL.Query().Get("tool"), 200), Args: "{}"}), nil
}

func (d policyPages) page(r *request, try PolicyTry) *PolicyPage {
	set := d.settings()
	p := &PolicyPage{On: set.On, MayEdit: d.mayEdit(r), Default: effect(cmp.Or(set.Default, policy.Ask)), Flow: flowEffect(set.Flow), Isolate: set.Isolate, Tests: len(set.Tests), Try: try}
	if set.On {
		for i, rule := range set.Rules {
			p.Rules = append(p.Rules, newPolicyRule(i, rule))
		}
	}
	for _, t := range d.service.Tools() {
		if len(p.Known) < maxKnown {
			p.Known = append(p.Known, t.ID.String())
		}
	}
	return p
}

func newPolicyRule(i int, rule policy.Rule) PolicyRule {
	p := PolicyRule{Rule: rule, Number: i + 1, Effect: effect(rule.Then), Tone: effects[rule.Then][1]}
	if p.Name == "" {
		p.Name = fmt.Sprintf("rule %d", i+1)
	}
	if l := rule.Limit; l != nil {
		p.Effect = fmt.Sprintf("at most %s per %s", groupDigits(int64(l.Calls)), l.Per)
		if l.By != "" {
			p.Effect += ", counted by " + l.By
		}
		if l.Cost != "" {
			p.Effect += ", a call counts " + l.Cost
		}
	}
	return p
}

// flowEffect is what happens to a call that could carry private data outside.
func flowEffect(f policy.Flow) string {
	switch f {
	case policy.FlowOff:
		return "allowed"
	case policy.FlowDeny:
		return "refused"
	}
	return effect(policy.Ask)
}

// try decides about the call of the form, without making it.
func (d policyPages) try(r *request) (any, error) {
	form := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	try := PolicyTry{Tool: sanitize.Line(form("tool"), 200), Args: execution.Visible(r.PostFormValue("args")), Principal: sanitize.Line(form("principal"), 200)}
	p := d.page(r, try)
	decision, steps, err := d.trace(r, try)
	if err != nil {
		e := tool.AsError(err)
		p.Try.Problem, p.Try.Hint, r.status = e.Message, e.Hint, e.Kind.Status()
		return p, nil
	}
	p.Try.Decision, p.Try.Effect, p.Try.Tone = decision, effect(decision.Action), effects[decision.Action][1]
	for i := range min(len(steps), len(p.Rules)) {
		p.Rules[i].Match, p.Rules[i].Problem = string(steps[i].Match), steps[i].Problem
	}
	return p, nil
}

func (d policyPages) trace(r *request, try PolicyTry) (policy.Decision, []policy.Step, error) {
	id, err := tool.ParseID(try.Tool)
	if err != nil {
		return policy.Decision{}, nil, err
	}
	args, err := jsonObject(try.Args)
	if err != nil {
		return policy.Decision{}, nil, err
	}
	id.Upstream = tool.Identifier(id.Upstream)
	return d.service.TracePolicy(tool.WithPrincipal(r.Context(), try.Principal), tool.Call{Tool: id, Args: args})
}

// jsonObject returns a JSON object of a form in compact form.
func jsonObject(text string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		why := "another value"
		if err != nil {
			why = sanitize.Line(err.Error(), 200)
		}
		return nil, &tool.Error{Kind: tool.Invalid, Message: "the arguments must be one JSON object: " + why, Hint: `such as {"name": "value"}`}
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, []byte(text))
	return compact.Bytes(), err
}

// PolicyReview is what an edit of the policy would change.
type PolicyReview struct {
	Tests, FailedTests int
	// Warnings are rules that can never decide, and tests that fail.
	Warnings []string
	rehearsal.Outcome
	// Headline says what would be decided, in one sentence.
	Headline string
}

// firstRules are proposed for settings without a policy.
const firstRules = `policy:
  default: ask   # calls that no rule decides, and that do more than read
  rules:
    - name: what I trust
      tools: ["UPSTREAM.*"]   # or one tool: UPSTREAM.TOOL
      then: allow
`

// edit shows the rules as text.
func (d policyPages) edit(r *request) (any, error) {
	r.setTitle("Edit the policy", Crumb{"Policy", policyPath})
	part, err := d.open(r, "policy")
	if part.Text == "" {
		part.Text = firstRules
	}
	return newEditPage(part), err
}

// change checks the text of the form; a text that was checked before is saved.
func (d policyPages) change(r *request) (string, error) {
	r.setTitle("Edit the policy", Crumb{"Policy", policyPath})
	page, checked, done, err := d.draft(r, "policy")
	switch {
	case err != nil:
		return "", err
	case done:
		return policyPath, nil
	}
	if r.again = page; len(page.Problems) == 0 {
		page.Review, err = d.review(r, checked.Config)
	}
	return "", err
}

// review says what the policy of settings would change.
func (d policyPages) review(r *request, cfg *config.Config) (*PolicyReview, error) {
	p := &PolicyReview{}
	compiled, err := policy.New(cfg.Policy, nil)
	if err != nil {
		return nil, err
	}
	p.Warnings = cfg.Policy.Unreachable(r.Context(), compiled)
	tests, err := rehearsal.Tests(r.Context(), cfg)
	if err != nil {
		return nil, err
	}
	for _, t := range tests {
		if p.Tests++; t.Problem != "" {
			p.FailedTests++
			p.Warnings = append(p.Warnings, fmt.Sprintf("the test of %s fails: %s", t.Call, t.Problem))
		}
	}
	p.Outcome, err = d.opts.Rehearse(r.Context(), cfg)
	p.Headline = headline(p.Outcome)
	return p, err
}

// headline says what would be decided about the calls of the last day.
func headline(o rehearsal.Outcome) string {
	if o.Calls == 0 {
		return "No calls are on record from the last day, so there is nothing to compare."
	}
	parts := []string{}
	for _, of := range []struct {
		n     int
		words string
	}{{o.Refused, "would be refused"}, {o.Asked, "would wait for approval"}, {o.Unknown, "cannot be told"}} {
		if of.n > 0 {
			parts = append(parts, groupDigits(int64(of.n))+" "+of.words)
		}
	}
	text := "Of " + plural(int64(o.Calls), "call", "calls") + " of the last day, "
	if len(parts) == 0 {
		return text + "all would be allowed." + differ(o)
	}
	return text + strings.Join(parts, ", ") + "." + differ(o)
}

func differ(o rehearsal.Outcome) string {
	if o.Differ == 0 {
		return " None is decided differently from when it was made."
	}
	if o.Differ == 1 {
		return " 1 is decided differently from when it was made."
	}
	return " " + groupDigits(int64(o.Differ)) + " are decided differently from when they were made."
}
