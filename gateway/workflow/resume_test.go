package workflow_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/workflow"
	"sallyport/internal/tool"
)

const failing = `
steps:
  - {id: a, tool: t.echo, with: {x: 1}}
  - id: each
    for_each: [1, 2]
    steps: [{id: b, tool: t.once, with: {i: "${{ item }}"}}]
  - {id: c, tool: t.echo, with: {all: "${{ steps.each.output }}"}}`

// once is a tool that fails for 2 at first.
func once() func(context.Context, map[string]any) (any, error) {
	failed := false
	return func(_ context.Context, args map[string]any) (any, error) {
		if args["i"] == 2.0 && !failed {
			failed = true
			return nil, isError("not yet")
		}
		return args, nil
	}
}

// A run that failed goes on where it failed: what had ended is not done again.
func TestResume(t *testing.T) {
	t.Parallel()
	d := standard()
	d.tools["once"] = once()
	e := engine(t, d, workflow.Options{}, map[string]string{"flow": failing})
	r := run(t, e, workflow.Start{Workflow: "flow"})
	if r.Status != workflow.Failed || r.Error.Step != "each[1].b" {
		t.Fatalf("it is %s: %+v", r.Status, r.Error)
	}
	if _, err := e.Resume(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	r, err := e.Wait(t.Context(), r.ID)
	if err != nil || r.Status != workflow.OK || r.Error != nil {
		t.Fatalf("it is %s: %+v, %v", r.Status, r.Error, err)
	}
	want := []string{`echo {"x":1}`, `once {"i":1}`, `once {"i":2}`, `once {"i":2}`, `echo {"all":[{"i":1},{"i":2}]}`}
	if diff := cmp.Diff(want, d.recordedCalls()); diff != "" {
		t.Errorf("calls: %s", diff)
	}
	if _, err := e.Resume(t.Context(), r.ID); err == nil || tool.AsError(err).Kind != tool.Invalid {
		t.Errorf("a run that ended well is resumed: %v", err)
	}
}

// A replay takes over what had ended before a step, and does the rest.
func TestReplay(t *testing.T) {
	t.Parallel()
	d := standard()
	d.tools["once"] = once()
	e := engine(t, d, workflow.Options{}, map[string]string{"flow": failing})
	old := run(t, e, workflow.Start{Workflow: "flow"})
	for step, want := range map[string]string{
		"each": `once {"i":1}|once {"i":2}|echo {"all":[{"i":1},{"i":2}]}`, "each[1].b": `once {"i":2}|echo {"all":[{"i":1},{"i":2}]}`,
		"a": `echo {"x":1}|once {"i":1}|once {"i":2}|echo {"all":[{"i":1},{"i":2}]}`,
	} {
		before := len(d.recordedCalls())
		r, err := e.Replay(t.Context(), old.ID, step)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = e.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK || r.Of != old.ID {
			t.Errorf("from %s it is %+v: %v", step, r, err)
		}
		if got := strings.Join(d.recordedCalls()[before:], "|"); got != want {
			t.Errorf("from %s it calls %s, not %s", step, got, want)
		}
	}
	if _, err := e.Replay(t.Context(), old.ID, "d"); err == nil || !strings.Contains(err.Error(), "its steps are a, each") {
		t.Errorf("from a step that is not there: %v", err)
	}
}

// Runs are their principal's, and an operator's.
func TestWhose(t *testing.T) {
	t.Parallel()
	e := engine(t, standard(), workflow.Options{}, map[string]string{"flow": "steps: [{id: a, tool: t.echo}]"})
	ann, bob := tool.WithPrincipal(t.Context(), "ann"), tool.WithPrincipal(t.Context(), "bob")
	begun, err := e.Start(ann, workflow.Start{Workflow: "flow", Key: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.Start(ann, workflow.Start{Workflow: "flow", Key: "1"}); err != nil || again.ID != begun.ID {
		t.Errorf("the same start once more is %s: %v", again.ID, err)
	}
	if other, err := e.Start(bob, workflow.Start{Workflow: "flow", Key: "1"}); err != nil || other.ID == begun.ID {
		t.Errorf("the same key of somebody else is %s: %v", other.ID, err)
	}
	if _, err := e.Wait(bob, begun.ID); err == nil || tool.AsError(err).Kind != tool.NotFound {
		t.Errorf("bob sees ann's run: %v", err)
	}
	if err := e.Cancel(bob, begun.ID); err == nil || tool.AsError(err).Kind != tool.NotFound {
		t.Errorf("bob cancels ann's run: %v", err)
	}
	for ctx, want := range map[context.Context]int{ann: 1, bob: 1, tool.WithOperator(bob, "ops"): 2} {
		if list, err := e.Runs(ctx, workflow.Filter{}); err != nil || len(list) != want {
			t.Errorf("%d runs are seen, not %d: %v", len(list), want, err)
		}
	}
}
