package workflow_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/internal/tool"
)

// What is cached is taken over for as long as it says, by the same arguments; what has a key is done once, by several runs at once too.
func TestKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := standard()
		var done atomic.Int64
		d.tools["slow"] = func(_ context.Context, args map[string]any) (any, error) {
			time.Sleep(time.Second)
			return map[string]any{"n": done.Add(1), "x": args["x"]}, nil
		}
		e := engine(t, d, workflow.Options{}, map[string]string{
			"cached": "inputs: {x: {}}\nsteps: [{id: a, tool: t.slow, with: {x: \"${{ inputs.x }}\"}, cache: {for: 10m}}]\noutputs: {n: {value: \"${{ steps.a.output.n }}\"}, s: {value: \"${{ steps.a.status }}\"}}",
			"once":   "inputs: {k: {}}\nsteps: [{id: a, tool: t.slow, idempotency_key: \"k-${{ inputs.k }}\"}]\noutputs: {n: {value: \"${{ steps.a.output.n }}\"}}",
		})
		comes := func(name, inputs, want string) {
			t.Helper()
			if r := run(t, e, workflow.Start{Workflow: name, Inputs: []byte(inputs)}); string(r.Outputs) != want {
				t.Errorf("%s %s comes to %s, not %s (%+v)", name, inputs, r.Outputs, want, r.Error)
			}
		}
		comes("cached", `{"x":1}`, `{"n":1,"s":"ok"}`)
		comes("cached", `{"x":1}`, `{"n":1,"s":"cached"}`)
		comes("cached", `{"x":2}`, `{"n":2,"s":"ok"}`)
		time.Sleep(11 * time.Minute)
		comes("cached", `{"x":1}`, `{"n":3,"s":"ok"}`)

		one, err := e.Start(t.Context(), workflow.Start{Workflow: "once", Inputs: []byte(`{"k":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		comes("once", `{"k":1}`, `{"n":4}`)
		if r, err := e.Wait(t.Context(), one.ID); err != nil || string(r.Outputs) != `{"n":4}` {
			t.Errorf("the one beside it comes to %s: %v", r.Outputs, err)
		}
		comes("once", `{"k":2}`, `{"n":5}`)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Inputs are checked, all at once.
func TestInputs(t *testing.T) {
	t.Parallel()
	e := engine(t, standard(), workflow.Options{Env: func(name string) (string, bool) { return "at " + name, true }}, map[string]string{"flow": `
env: [HOME]
inputs:
  name: {type: string, pattern: "^[a-z]+$"}
  count: {type: integer, minimum: 1, default: 2}
  home: {type: string, default: "${{ env.HOME }}"}
  maybe: {type: string, optional: true}
steps: [{id: a, tool: t.echo, with: {got: "${{ inputs }}"}}]
outputs: {got: {value: "${{ steps.a.output.got }}"}}`})
	for inputs, want := range map[string]string{
		`{"name":"ann"}`:                         `{"got":{"count":2,"home":"at HOME","maybe":null,"name":"ann"}}`,
		``:                                       "input name is missing",
		`{"name":"Ann","count":0}`:               "input name 'Ann' does not match pattern '^[a-z]+$'; input count minimum: got 0, want 1",
		`{"nam":"ann"}`:                          "there is no input nam (did you mean name?); input name is missing",
		`{"name":"ann","count":"x"}`:             "input count got string, want integer",
		`[1]`:                                    "the inputs must be an object, not a list",
		`{"name":"ann","name":"bob"}`:            "the inputs are not JSON",
		`{"name":"` + strings.Repeat("x", 2<<20): "inputs have at most 1048576 bytes",
	} {
		begun, err := e.Start(t.Context(), workflow.Start{Workflow: "flow", Inputs: []byte(inputs)})
		if err != nil {
			if e := tool.AsError(err); e.Kind != tool.Invalid && e.Kind != tool.Limit || !strings.Contains(e.Message, want) {
				t.Errorf("%.60s: %v, not %s", inputs, err, want)
			}
			continue
		}
		if r, err := e.Wait(t.Context(), begun.ID); err != nil || string(r.Outputs) != want {
			t.Errorf("%.60s comes to %s, not %s: %v", inputs, r.Outputs, want, err)
		}
	}
	if _, err := e.Start(t.Context(), workflow.Start{Workflow: "flwo"}); err == nil || !strings.Contains(err.Error(), "did you mean flow?") {
		t.Errorf("a workflow that is not there: %v", err)
	}
}

// labels are what sessions have read, by hand.
type labels map[string][]toolcall.Origin

func (l labels) SessionOrigins(ctx context.Context) []toolcall.Origin { return l[tool.Session(ctx)] }
func (l labels) AddOrigins(ctx context.Context, read []toolcall.Origin) {
	l[tool.Session(ctx)] = append(l[tool.Session(ctx)], read...)
}

// What whoever starts a run had read, the run has read; and what it reads is on record once.
func TestLabels(t *testing.T) {
	t.Parallel()
	d, known := standard(), labels{"mine": {{Label: "mail"}}}
	d.tools["web"] = func(ctx context.Context, _ map[string]any) (any, error) {
		known.AddOrigins(ctx, []toolcall.Origin{{Label: "web"}})
		return nil, nil
	}
	e := engine(t, d, workflow.Options{Labels: known}, map[string]string{"flow": "steps: [{id: a, tool: t.echo}, {id: b, tool: t.web}, {id: c, tool: t.echo}]"})
	begun, err := e.Start(tool.WithSession(t.Context(), "mine"), workflow.Start{Workflow: "flow", Read: []toolcall.Origin{{Label: "posted"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Wait(t.Context(), begun.ID); err != nil {
		t.Fatal(err)
	}
	var read []string
	for event, err := range e.Events(t.Context(), begun.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Start != nil {
			read = append(read, string(event.Start.Read))
		}
		if event.Read != nil {
			read = append(read, event.Path+" "+string(event.Read))
		}
	}
	if len(read) != 2 || !strings.Contains(read[0], `"mail"`) || !strings.Contains(read[0], `"posted"`) || !strings.HasPrefix(read[1], "b ") || strings.Contains(read[1], "mail") {
		t.Errorf("on record is %q", read)
	}
}
