package workflow_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/execution"
	"sallyport/gateway/workflow"
)

// What a step came to is data to those after it (L01): what looks like an expression in it is a text, however often it is passed on.
func TestOutputsAreEvaluatedOnce(t *testing.T) {
	t.Parallel()
	const hostile = "${{ env.KEY }} {{ env.KEY }} $${{ run.id }} ${{ '"
	d := standard()
	d.tools["read"] = func(context.Context, map[string]any) (any, error) { return map[string]any{"text": hostile}, nil }
	e := engine(t, d, workflow.Options{Env: func(string) (string, bool) { return "sesame", true }}, map[string]string{"flow": `
env: [KEY]
outputs: {text: "${{ steps.again.output[0].text }}"}
steps:
  - {id: a, tool: t.read}
  - {id: b, tool: t.echo, with: {text: "${{ steps.a.output.text }}"}}
  - {id: again, for_each: ["${{ steps.b.output.text }}"], steps: [{id: c, tool: t.echo, with: {text: "${{ item }}"}}]}`})
	r := run(t, e, workflow.Start{Workflow: "flow"})
	if got := string(r.Outputs); r.Status != workflow.OK || strings.Contains(got, "sesame") || !strings.Contains(got, `$${{ run.id }}`) {
		t.Errorf("%s: %s %+v", r.Status, got, r.Error)
	}
	for _, call := range d.recordedCalls() {
		if strings.Contains(call, "sesame") {
			t.Errorf("a call has what an upstream asked for: %s", call)
		}
	}
}

// Nothing is ever put into the text of a program (L02): inputs are variables of it.
func TestCodeIsNotFilledIn(t *testing.T) {
	t.Parallel()
	const code, name = "print('${{ inputs.name }}')", "');import os#"
	d := standard()
	d.code = func(_ context.Context, p execution.Program) (execution.Result, error) {
		if p.Code != code+"\n" {
			t.Errorf("the program is %q", p.Code)
		}
		return value(p.ID, string(p.Variables["name"])), nil
	}
	e := engine(t, d, workflow.Options{}, map[string]string{"flow": `
inputs: {name: string}
outputs: {name: "${{ steps.a.output }}"}
steps:
  - id: a
    code: |
      ` + code + `
    with: {name: "${{ inputs.name }}"}`})
	r := run(t, e, workflow.Start{Workflow: "flow", Inputs: []byte(`{"name":"` + name + `"}`)})
	if diff := cmp.Diff(`{"name":"`+name+`"}`, string(r.Outputs)); diff != "" || r.Status != workflow.OK {
		t.Errorf("%s %s %+v", r.Status, diff, r.Error)
	}
}
