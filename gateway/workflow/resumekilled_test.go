package workflow_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/gateway/workflow"
	"sallyport/internal/approval"
	"sallyport/internal/store"
)

// hangFor is a tool that hangs for one number until its context ends, and returns others.
func hangFor(numbers ...float64) func(context.Context, map[string]any) (any, error) {
	return func(ctx context.Context, args map[string]any) (any, error) {
		if i, ok := args["i"].(float64); ok && slices.Contains(numbers, i) {
			return hang(ctx, args)
		}
		return args, nil
	}
}

// A resumed run whose engine is killed again does not repeat iterations that had ended before the run failed.
func TestResumeKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records, d := store.Memory(), standard()
		d.tools["once"] = once()
		texts := map[string]string{"flow": strings.Replace(failing, "tool: t.once", "tool: t.once, interrupted: retry", 1)}
		first := engine(t, d, workflow.Options{Records: records}, texts)
		r := run(t, first, workflow.Start{Workflow: "flow"})
		d.tools["once"] = hangFor(2)
		if _, err := first.Resume(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := first.Close(); err != nil { // which leaves no more than a kill does
			t.Fatal(err)
		}
		delete(d.tools, "once")
		second := engine(t, d, workflow.Options{Records: records}, texts)
		if r, err := second.Wait(t.Context(), r.ID); err != nil || r.Status != workflow.OK {
			t.Errorf("it is %s: %+v, %v", r.Status, r.Error, err)
		}
		want := `echo {"x":1}|once {"i":1}|once {"i":2}|once {"i":2}|once {"i":2}|echo {"all":[{"i":1},{"i":2}]}`
		if got := strings.Join(d.recordedCalls(), "|"); got != want {
			t.Errorf("calls: %s, want %s", got, want)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A resumed run asks again about a step that may have been done and whose repetition a person has denied. It does not repeat what another
// answer has reported as done.
func TestResumeDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, records, d := &people{}, store.Memory(), standard()
		d.tools["pay"] = hang
		texts := map[string]string{"flow": `steps: [{id: each, for_each: [1, 2], concurrency: 2, steps: [{id: pay, tool: t.pay, with: {i: "${{ item }}"}}]}]`}
		first := engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
		r := begin(t, first, workflow.Start{Workflow: "flow"})
		if err := first.Close(); err != nil { // which leaves no more than a kill does
			t.Fatal(err)
		}
		delete(d.tools, "pay")
		second := engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
		synctest.Wait()
		answer := func(states map[string]approval.State) (asked int) {
			for question, state := range p.questions() {
				for step, say := range states {
					if state == approval.Waiting && strings.HasPrefix(question, step) {
						asked++
						p.say(question, say)
						synctest.Wait()
					}
				}
			}
			return asked
		}
		if n := answer(map[string]approval.State{"each[0].pay": approval.Done}); n != 1 {
			t.Errorf("%d questions about the first", n)
		}
		if n := answer(map[string]approval.State{"each[1].pay": approval.Denied}); n != 1 {
			t.Errorf("%d questions about the second", n)
		}
		if r, err := second.Wait(t.Context(), r.ID); err != nil || r.Status == workflow.OK {
			t.Fatalf("it is %s: %v", r.Status, err)
		}
		for range 2 { // the second time by another engine
			if _, err := second.Resume(t.Context(), r.ID); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := len(d.recordedCalls()); n != 2 {
				t.Errorf("%d calls before an answer: %v", n, d.recordedCalls())
			}
			if n := answer(map[string]approval.State{"each[0].pay": approval.Done, "each[1].pay": approval.Denied}); n != 1 {
				t.Errorf("%d questions", n)
			}
			if r, err := second.Wait(t.Context(), r.ID); err != nil || r.Status == workflow.OK {
				t.Fatalf("it is %s: %v", r.Status, err)
			}
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
			second = engine(t, d, workflow.Options{Approvals: p, Records: records}, texts)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}
