package lint_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/policy"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/tool"
)

// rules are a policy: what deletes needs approval, and /etc is not touched.
type rules struct{ asked int }

// ExplainPolicy implements [lint.Policy].
func (r *rules) ExplainPolicy(_ context.Context, call tool.Call) (policy.Decision, error) {
	r.asked++
	switch {
	case strings.Contains(string(call.Args), "/etc"):
		return policy.Decision{Action: policy.Deny, Rule: "system"}, nil
	case call.Tool.Name == "delete":
		return policy.Decision{Action: policy.Ask, Rule: "deletes"}, nil
	case call.Tool.Upstream == "tickets":
		return policy.Decision{}, &tool.Error{Kind: tool.NotFound, Message: "there is no tool " + call.Tool.String()}
	}
	return policy.Decision{Action: policy.Allow}, nil
}

func TestPlan(t *testing.T) {
	o := lint.PlanOptions{Policy: &rules{}, Workflows: map[string]*spec.Definition{"other": load(t, "other")}, Env: map[string]string{"HOME": "/home/ann"}}
	p, err := lint.Plan(t.Context(), load(t, "plan"), map[string]any{}, o)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/plan.golden", p.Text())
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again lint.Planned
	if err := json.Unmarshal(data, &again); err != nil || again.Text() != p.Text() {
		t.Errorf("%v: %s", err, cmp.Diff(p.Text(), again.Text()))
	}
}

// What is wrong with inputs is said all at once, before anything is planned.
func TestPlanInputs(t *testing.T) {
	asked := &rules{}
	o := lint.PlanOptions{Policy: asked}
	_, err := lint.Plan(t.Context(), load(t, "other"), map[string]any{"nme": "x", "n": "3"}, o)
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Kind != tool.Invalid || !strings.Contains(e.Message, "input name is missing") || !strings.Contains(e.Message, `no input nme; did you mean "name"`) || !strings.Contains(e.Message, "n: got string, want integer") {
		t.Errorf("%v", err)
	}
	p, err := lint.Plan(t.Context(), load(t, "names"), map[string]any{"folder": "x"}, o)
	if err == nil || !strings.Contains(err.Error(), "names.yaml:11:155: there is no inpts") {
		t.Errorf("%v %v", p, err)
	}
	// Nothing is known of the environment, and a workflow that calls itself ends.
	if _, err = lint.Plan(t.Context(), load(t, "circle"), nil, lint.PlanOptions{Workflows: map[string]*spec.Definition{"edges": load(t, "circle")}}); err != nil {
		t.Error(err)
	}
	p, err = lint.Plan(t.Context(), load(t, "plan"), map[string]any{"quiet": true, "names": []any{}}, lint.PlanOptions{})
	if err != nil || p.Steps[0].With.(map[string]any)["path"] != "‹inputs.folder›" || p.Steps[0].Verdict != nil {
		t.Errorf("%v %+v", err, p.Steps)
	}
}

// The definitions that ship can be planned, and nothing in them is wrong that can be seen without tools.
func TestShipped(t *testing.T) {
	defs, faults := spec.LoadDir("../../../workflows")
	if len(faults) > 0 || len(defs) < 6 {
		t.Fatal(defs, faults)
	}
	all := map[string]*spec.Definition{}
	for _, d := range defs {
		all[d.Name] = d
	}
	for _, d := range defs {
		if found := lint.Check(d, lint.Options{Workflows: all}); len(found) > 0 {
			t.Errorf("%v", found)
		}
		inputs := map[string]any{}
		for _, in := range d.Inputs {
			if in.Default == nil && !in.Optional {
				inputs[in.Name.Text] = "notes.md"
				if strings.Contains(string(in.Schema), `"array"`) {
					inputs[in.Name.Text] = []any{}
				}
			}
		}
		p, err := lint.Plan(t.Context(), d, inputs, lint.PlanOptions{Workflows: all})
		if err != nil || strings.Contains(p.Text(), "! fails") {
			t.Errorf("%s: %v\n%s", d.Name, err, p.Text())
		}
	}
}
