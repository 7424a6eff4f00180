package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/execution"
	"sallyport/gateway/workflow"
	"sallyport/internal/tool"
)

// Each kind of step, by what the run comes to and what it calls.
var kinds = []struct {
	name, text, inputs string
	status             workflow.Status
	outputs            string // or, where it fails, "step: kind: message"
	calls              []string
}{
	{"a tool", `
inputs: {name: {type: string}}
steps:
  - id: a
    tool: t.echo
    with: {text: "hello ${{ inputs.name }}", n: 3}
  - id: b
    tool: t.echo
    with: {was: "${{ steps.a.output }}"}
outputs: {n: {value: "${{ steps.b.output.was.n + 1 }}"}}`, `{"name":"you"}`, workflow.OK, `{"n":4}`,
		[]string{`echo {"n":3,"text":"hello you"}`, `echo {"was":{"n":3,"text":"hello you"}}`}},
	{"a condition and an output", `
steps:
  - {id: a, tool: t.echo, with: {x: 1}, if: "false"}
  - {id: b, tool: t.echo, with: {x: 2}, output: "${{ output.x * 10 }}"}
outputs: {a: {value: "${{ steps.a }}"}, b: {value: "${{ steps.b.output }}"}}`, ``, workflow.OK,
		`{"a":{"error":null,"output":null,"status":"skipped"},"b":20}`, []string{`echo {"x":2}`}},
	{"a loop", `
steps:
  - id: each
    for_each: [a, b, c]
    as: letter
    steps: [{id: up, tool: t.echo, with: {l: "${{ letter }}", i: "${{ index }}"}, output: "${{ output.l + string(output.i) }}"}]
outputs: {all: {value: "${{ steps.each.output }}"}}`, ``, workflow.OK, `{"all":["a0","b1","c2"]}`,
		[]string{`echo {"i":0,"l":"a"}`, `echo {"i":1,"l":"b"}`, `echo {"i":2,"l":"c"}`}},
	{"branches", `
steps:
  - id: both
    parallel:
      left: [{id: l, tool: t.echo, with: {x: 1}}]
      right: [{id: r, tool: t.echo, if: "false"}]
outputs: {both: {value: "${{ steps.both.output }}"}}`, ``, workflow.OK, `{"both":{"left":{"x":1},"right":null}}`, []string{`echo {"x":1}`}},
	{"a switch", `
inputs: {n: {type: integer}}
steps:
  - id: pick
    switch:
      - when: inputs.n > 10
        steps: [{id: big, tool: t.echo, with: {big: true}}]
      - when: inputs.n > 5
        steps: [{id: middle, tool: t.echo, with: {middle: true}}]
    default: [{id: small, tool: t.echo, with: {small: true}}]
outputs: {pick: {value: "${{ steps.pick.output }}"}}`, `{"n":7}`, workflow.OK, `{"pick":{"middle":true}}`, []string{`echo {"middle":true}`}},
	{"while", `
steps:
  - id: again
    while: "last == null || last.n < 3"
    max: 5
    steps: [{id: s, tool: t.echo, with: {n: "${{ index + 1 }}"}}]
outputs: {n: {value: "${{ steps.again.output.n }}"}}`, ``, workflow.OK, `{"n":3}`, []string{`echo {"n":1}`, `echo {"n":2}`, `echo {"n":3}`}},
	{"while without an end", `
steps:
  - {id: again, while: "true", max: 2, steps: [{id: s, tool: t.echo}]}`, ``, workflow.Failed,
		"again: limit: the while condition still holds after 2 iterations", []string{`echo {}`, `echo {}`}},
	{"a failure that is caught", `
steps:
  - id: guard
    try: [{id: bad, tool: t.fail}, {id: never, tool: t.echo}]
    catch: [{id: mend, tool: t.echo, with: {why: "${{ error.kind }}: ${{ error.message }} in ${{ error.step }}"}}]
    finally: [{id: last, tool: t.echo, with: {last: true}}]
outputs: {why: {value: "${{ steps.guard.output.why }}"}}`, ``, workflow.OK, `{"why":"failed: t.fail failed: no paper in guard.try.bad"}`,
		[]string{`fail {}`, `echo {"why":"failed: t.fail failed: no paper in guard.try.bad"}`, `echo {"last":true}`}},
	{"a failure that is not caught", `
steps:
  - id: guard
    try: [{id: bad, tool: t.fail}]
    finally: [{id: last, tool: t.echo}]
  - {id: never, tool: t.echo}`, ``, workflow.Failed, "guard.try.bad: failed: t.fail failed: no paper", []string{`fail {}`, `echo {}`}},
	{"code", `
steps:
  - id: c
    code: |
      result = n + 1
    with: {n: 2}
outputs: {c: {value: "${{ steps.c.output }}"}}`, ``, workflow.OK, `{"c":3}`, []string{"code result = n + 1\n\nresult"}},
	{"another workflow", `
steps:
  - {id: sub, workflow: inner, with: {x: 4}}
outputs: {y: {value: "${{ steps.sub.output.y }}"}}`, ``, workflow.OK, `{"y":8}`, []string{`echo {"v":8}`}},
	{"an expression that cannot be", `
steps:
  - {id: a, tool: t.echo, with: {x: "${{ 1 / (size([]) ) }}"}}`, ``, workflow.Failed, "a: invalid: ", nil},
	{"an output that does not fit", `
steps: [{id: a, tool: t.echo, with: {x: 1}}]
outputs: {x: {value: "${{ steps.a.output.x }}", type: string}}`, ``, workflow.Failed, ": invalid: output x got number, want string", []string{`echo {"x":1}`}},
}

const inner = `
inputs: {x: {type: integer}}
steps: [{id: e, tool: t.echo, with: {v: "${{ inputs.x * 2 }}"}}]
outputs: {y: {value: "${{ steps.e.output.v }}"}}`

func standard() *stubCaller {
	return &stubCaller{
		tools: map[string]func(context.Context, map[string]any) (any, error){
			"fail": func(context.Context, map[string]any) (any, error) { return nil, isError("no paper") },
			"break": func(context.Context, map[string]any) (any, error) {
				return nil, &tool.Error{Kind: tool.Upstream, Message: "gone"}
			},
		},
		code: func(_ context.Context, p execution.Program) (execution.Result, error) {
			var n int
			err := json.Unmarshal(p.Variables["n"], &n)
			out, err2 := json.Marshal(n + 1)
			return value(p.ID, string(out)), errors.Join(err, err2)
		},
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, row := range kinds {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := standard()
			e := engine(t, d, workflow.Options{}, map[string]string{"flow": row.text, "inner": inner})
			r := run(t, e, workflow.Start{Workflow: "flow", Inputs: json.RawMessage(row.inputs)})
			if r.Status != row.status {
				t.Errorf("it is %s: %+v", r.Status, r.Error)
			}
			if got := string(r.Outputs); row.status == workflow.OK && got != row.outputs {
				t.Errorf("it comes to %s, not %s", got, row.outputs)
			}
			if row.status == workflow.Failed {
				if got := r.Error.Step + ": " + string(r.Error.Kind) + ": " + r.Error.Message; !strings.HasPrefix(got, row.outputs) {
					t.Errorf("it failed with %q, not %q", got, row.outputs)
				}
			}
			if diff := cmp.Diff(row.calls, d.recordedCalls()); diff != "" {
				t.Errorf("calls: %s", diff)
			}
		})
	}
}
