package workflow_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/internal/store"
)

// Of two engines that have one run, the one that came later goes on with it; the other does nothing more, and says so.
func TestFence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records, d := store.Memory(), standard()
		var mu sync.Mutex
		nap := time.Minute
		d.tools["nap"] = func(ctx context.Context, args map[string]any) (any, error) {
			mu.Lock()
			long := nap
			nap = time.Second // the next is quicker
			mu.Unlock()
			select {
			case <-time.After(long):
			case <-ctx.Done():
			}
			return args, nil
		}
		texts := map[string]string{"flow": "steps: [{id: a, tool: t.echo}, {id: n, tool: t.nap, interrupted: retry}, {id: b, tool: t.echo, with: {last: true}}]"}
		first := engine(t, d, workflow.Options{Records: records}, texts)
		r := begin(t, first, workflow.Start{Workflow: "flow"})
		second := engine(t, d, workflow.Options{Records: records}, texts)
		r, err := second.Wait(t.Context(), r.ID)
		if err != nil || r.Status != workflow.OK {
			t.Fatalf("it is %s: %+v, %v", r.Status, r.Error, err)
		}
		if _, err := first.Wait(t.Context(), r.ID); err == nil || !strings.Contains(err.Error(), "is not continued here") {
			t.Errorf("the engine that had it before says %v", err)
		}
		if got, want := strings.Join(d.recordedCalls(), "|"), `echo {}|nap {}|nap {}|echo {"last":true}`; got != want {
			t.Errorf("it calls %s, not %s", got, want)
		}
		for _, e := range []*workflow.Engine{first, second} {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A run that its engine has lost can be resumed as it is.
func TestAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records, d, texts := store.Memory(), standard(), map[string]string{"flow": "steps: [{id: w, wait: {for: 1h}}, {id: b, tool: t.echo}]"}
		first := engine(t, d, workflow.Options{Records: records}, texts)
		r := begin(t, first, workflow.Start{Workflow: "flow"})
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := engine(t, d, workflow.Options{Records: records, NoAutoResume: true}, texts)
		time.Sleep(2 * time.Hour)
		if r = now(t, second, r.ID); r.Status != workflow.Waiting {
			t.Errorf("an engine for others goes on with it: %s", r.Status)
		}
		if _, err := second.Resume(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		if r, err := second.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK || time.Since(r.Started) != 2*time.Hour {
			t.Errorf("it is %s: %+v, %v", r.Status, r.Error, err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Workflows do not run each other without end.
func TestNestedBounds(t *testing.T) {
	t.Parallel()
	e := engine(t, standard(), workflow.Options{}, map[string]string{
		"ping": "steps: [{id: a, workflow: pong}]", "pong": "steps: [{id: b, workflow: ping}]",
		"outer": "steps: [{id: a, workflow: inner, with: {x: one}}]", "inner": inner, "lost": "steps: [{id: a, workflow: iner}]",
	})
	for name, want := range map[string]string{
		"ping": "a.b: invalid: workflows nest without end, or too deep: ping > pong > ping", "outer": "a: invalid: workflow inner: input x got string, want integer",
		"lost": "a: not_found: there is no workflow iner",
	} {
		r := run(t, e, workflow.Start{Workflow: name})
		if r.Error == nil || r.Error.Step+": "+string(r.Error.Kind)+": "+r.Error.Message != want {
			t.Errorf("%s: %+v, not %s", name, r.Error, want)
		}
	}
}

// Branches look at the same values at once.
func TestShared(t *testing.T) {
	t.Parallel()
	e := engine(t, standard(), workflow.Options{}, map[string]string{"flow": `
steps:
  - {id: a, tool: t.echo, with: {list: [1, 2.5, {x: [y, null]}], text: "é"}}
  - id: each
    for_each: "${{ lists.range(40) }}"
    concurrency: 16
    steps: [{id: s, tool: t.echo, with: {all: "${{ steps.a.output }}", n: "${{ item }}"}}]
outputs: {same: {value: "${{ steps.each.output.all(e, e.all == steps.a.output) }}"}}`})
	for range 3 {
		if r := run(t, e, workflow.Start{Workflow: "flow"}); string(r.Outputs) != `{"same":true}` {
			t.Errorf("it comes to %s: %+v", r.Outputs, r.Error)
		}
	}
}
