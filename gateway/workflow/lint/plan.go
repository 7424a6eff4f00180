package lint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/template"
	"sallyport/internal/argcheck"
	"sallyport/internal/expr"
	"sallyport/internal/policy"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Policy returns the policy decision for a call without making it.
type Policy interface {
	ExplainPolicy(ctx context.Context, call tool.Call) (policy.Decision, error)
}

// PlanOptions are the options of Plan.
type PlanOptions struct {
	// Workflows are the workflows that steps may run.
	Workflows map[string]*spec.Definition
	// Policy decides about each call on behalf of ctx's principal; nil is no policy.
	Policy Policy
	// Env are the environment variables that the definition names; nil means unknown.
	Env map[string]string
}

// Planned is what a run would do, as far as known before it.
type Planned struct {
	Workflow string         `json:"workflow"`
	Inputs   map[string]any `json:"inputs,omitempty"`
	Steps    []PlannedStep  `json:"steps"`
	Outputs  map[string]any `json:"outputs,omitempty"`
}

// PlannedStep is a step, or a block of steps within one. A text in ‹ › is an expression with a value that is not known before the run.
type PlannedStep struct {
	// Path is as in events; the steps of a loop are shown once, as its first iteration.
	Path string `json:"path"`
	// Kind is tool, code, skill, task, workflow, parallel, for_each, switch, while, wait, form, try, or block.
	Kind string `json:"kind"`
	Line int    `json:"line,omitempty"`
	// What is the target: the name of the tool or workflow, or how long it waits.
	What string `json:"what,omitempty"`
	// If is the condition if its value is unknown; Skipped says that it is false.
	If      string `json:"if,omitempty"`
	Skipped bool   `json:"skipped,omitempty"`
	// With are the arguments.
	With any `json:"with,omitempty"`
	// Notes are additional remarks.
	Notes []string `json:"notes,omitempty"`
	// Verdict is the policy decision for the call.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Problem is why the step would fail.
	Problem string        `json:"problem,omitempty"`
	Steps   []PlannedStep `json:"steps,omitempty"`
}

// Verdict is the policy decision for a call.
type Verdict struct {
	Action policy.Action `json:"action"`
	Rule   string        `json:"rule,omitempty"`
	Reason string        `json:"reason,omitempty"`
	// Unsure says that some arguments are not known yet, so the decision may change.
	Unsure bool `json:"unsure,omitempty"`
}

// Plan returns what a run with these inputs would do. It calls nothing. The error is a *[tool.Error] of kind invalid if the inputs are invalid, or a fault
// of the definition that [Check] finds too.
func Plan(ctx context.Context, d *spec.Definition, inputs map[string]any, o PlanOptions) (Planned, error) {
	p := &planner{ctx: ctx, o: o, scopes: map[string]template.Scope{}}
	f := p.frame(d, "")
	if err := p.inputs(f, inputs); err != nil {
		return Planned{}, err
	}
	out := Planned{Workflow: d.Name, Inputs: showMap(f.vars["inputs"]), Steps: p.block(f, d.Steps)}
	_, out.Outputs = p.outputs(f)
	return out, p.fault
}

// planner creates one plan.
type planner struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call of Plan
	o      PlanOptions
	scopes map[string]template.Scope // by the additional variable names
	depth  int                       // of nested workflows
	made   int
	fault  error // of the definition
}

// The limits of a plan.
const (
	maxNested  = 8
	maxPlanned = 2000
)

// frame has the location of a step and the variables of its expressions.
type frame struct {
	d    *spec.Definition
	path string
	vars map[string]any
	// more are the names in vars that are not available to all steps.
	more []string
	// last is the result of the step before.
	last any
}

func (p *planner) frame(d *spec.Definition, path string) *frame {
	env := map[string]any{}
	for _, name := range d.Env {
		env[name.Text] = expr.Unknown{}
		if value, ok := p.o.Env[name.Text]; ok || p.o.Env != nil {
			env[name.Text] = value
		}
	}
	run := map[string]any{"id": expr.Unknown{}, "workflow": d.Name, "started": expr.Unknown{}, "trigger": expr.Unknown{}}
	return &frame{d: d, path: path, vars: map[string]any{"env": env, "run": run, "steps": map[string]any{}, "inputs": map[string]any{}}}
}

// inside returns a frame for the steps in a block, with the variables of f and vars.
func (f *frame) inside(path string, vars map[string]any) *frame {
	in := &frame{d: f.d, path: path, vars: maps.Clone(f.vars), more: slices.Clip(f.more)}
	steps, _ := f.vars["steps"].(map[string]any)
	in.vars["steps"] = maps.Clone(steps)
	for name, value := range vars {
		in.vars[name] = value
		in.more = append(in.more, name)
	}
	return in
}

// inputs validates the given inputs and adds defaults.
func (p *planner) inputs(f *frame, given map[string]any) error {
	var problems []string
	all, names := map[string]any{}, []string{}
	f.vars["inputs"] = all
	for _, in := range f.d.Inputs {
		name := in.Name.Text
		names = append(names, name)
		value, ok := given[name]
		switch {
		case ok:
			problems = append(problems, violations(name, in.Schema, value)...)
		case in.Default != nil:
			value = p.value(f, *in.Default).value
		case !in.Optional:
			problems = append(problems, "input "+name+" is missing")
		}
		all[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			problems = append(problems, noSuch("input", name, names, "the workflow takes none"))
		}
	}
	if len(problems) > 0 {
		return &tool.Error{Kind: tool.Invalid, Message: "workflow " + f.d.Name + ": " + strings.Join(problems[:min(len(problems), 10)], "; ")}
	}
	return p.fault
}

func violations(name string, schema json.RawMessage, value any) (problems []string) {
	data, err := json.Marshal(value)
	if err != nil || hasUnknown(value) {
		return nil
	}
	for _, m := range argcheck.Explain(schema, data) {
		problems = append(problems, "input "+strings.Join(append([]string{name}, m.At...), ".")+": "+m.Message)
	}
	return problems
}

// outputs evaluates the outputs of a workflow: as values, and as shown.
func (p *planner) outputs(f *frame) (values, show map[string]any) {
	values, show = map[string]any{}, map[string]any{}
	for _, out := range f.d.Outputs {
		r := p.value(f, out.Value)
		values[out.Name.Text], show[out.Name.Text] = r.value, r.show
	}
	return values, show
}

// result is an evaluated value.
type result struct {
	value   any // expr.Unknown if it is not known
	show    any // with symbols in place of unknown values
	unsure  bool
	problem string
}

// value evaluates a value as far as possible.
func (p *planner) value(f *frame, v spec.Value) result {
	b, problems := template.Compile(p.scope(f), v)
	return p.evaluate(f, b, problems)
}

// text evaluates a text that is an expression.
func (p *planner) text(f *frame, t spec.Text) result {
	b, problems := template.CompileText(p.scope(f), t, expr.Any)
	return p.evaluate(f, b, problems)
}

func (p *planner) scope(f *frame) template.Scope {
	key := strings.Join(f.more, " ")
	if _, ok := p.scopes[key]; !ok {
		p.scopes[key] = template.Any(f.more...)
	}
	return p.scopes[key]
}

func (p *planner) evaluate(f *frame, b *template.Binding, problems []template.Problem) result {
	if b == nil {
		if p.fault == nil {
			p.fault = f.d.Error(problems[0].Text.At(problems[0].Offset), "%s", problems[0].Message)
		}
		return result{value: expr.Unknown{}, show: "", unsure: true}
	}
	show, err := b.Partial(p.ctx, f.vars, symbol)
	if err != nil {
		return result{value: expr.Unknown{}, show: nil, unsure: true, problem: tool.AsError(err).Message}
	}
	value, err := b.Eval(p.ctx, f.vars)
	if errors.Is(err, expr.ErrUnknown) {
		return result{value: expr.Unknown{}, show: show, unsure: true}
	}
	return result{value: value, show: show}
}

// symbol returns the symbol for an unknown value.
func symbol(source string) any { return "‹" + sanitize.Line(source, 200) + "›" }

// showValue returns a value with symbols in place of unknown values.
func showValue(v any) any {
	switch v := v.(type) {
	case expr.Unknown:
		return "‹not known yet›"
	case map[string]any:
		return showMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = showValue(v[i])
		}
		return out
	}
	return v
}

func showMap(v any) map[string]any {
	object, _ := v.(map[string]any)
	out := make(map[string]any, len(object))
	for name, value := range object {
		out[name] = showValue(value)
	}
	return out
}

func hasUnknown(v any) bool {
	switch v := v.(type) {
	case expr.Unknown:
		return true
	case map[string]any:
		for _, value := range v {
			if hasUnknown(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasUnknown)
	}
	return false
}

// askPolicy returns the policy decision for a call, or why there is none.
func (p *planner) askPolicy(id tool.ID, args result) (*Verdict, string) {
	if p.o.Policy == nil {
		return nil, ""
	}
	data, err := json.Marshal(cmp.Or(args.show, any(map[string]any{})))
	if err != nil {
		return nil, ""
	}
	d, err := p.o.Policy.ExplainPolicy(p.ctx, tool.Call{Tool: id, Args: data})
	if err != nil {
		return nil, tool.AsError(err).Error()
	}
	return &Verdict{Action: d.Action, Rule: d.Rule, Reason: d.Reason, Unsure: args.unsure}, ""
}

func times(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
