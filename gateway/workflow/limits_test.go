package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/internal/config"
	"sallyport/internal/store"
)

// Each way to do something often ends at the limits of a run, whose error names the limit.
func TestLimits(t *testing.T) {
	t.Parallel()
	small := workflow.Limits{Items: 10, Steps: 30}
	for _, row := range []struct {
		name, text string
		limits     workflow.Limits
		fault      string // "step: message"
		calls      int    // at most
	}{
		{"a million items", `steps: [{id: list, tool: t.million}, {id: each, for_each: "${{ steps.list.output.all }}", concurrency: 64, steps: [{id: s, tool: t.echo, with: {}}]}]`,
			workflow.Limits{}, "each: the loops of one run may make 10000 passes in all, and with this one's it would be 1000000 (workflows.limits.items)", 1},
		{"items", `steps: [{id: each, for_each: "${{ lists.range(11) }}", steps: [{id: s, tool: t.echo, with: {}}]}]`,
			small, "each: the loops of one run may make 10 passes in all, and with this one's it would be 11 (workflows.limits.items)", 0},
		{"steps of items", `steps: [{id: each, for_each: "${{ lists.range(9) }}", steps: [{id: a, tool: t.echo, with: {}}, {id: b, tool: t.echo, with: {}}, {id: c, tool: t.echo, with: {}}]}]`,
			small, "each: one run may make 30 steps, and a loop over 9 items of 3 steps makes more (workflows.limits.steps)", 0},
		{"loops in loops", `steps: [{id: each, for_each: "${{ lists.range(3) }}", steps: [{id: inside, for_each: "${{ lists.range(4) }}", steps: [{id: s, tool: t.echo, with: {}}]}]}]`,
			small, "each: the loops of one run may make 10 passes in all, and with this one's it would be 11 (", 4},
		{"workflows in loops", `steps: [{id: each, for_each: "${{ lists.range(3) }}", steps: [{id: inside, workflow: inner}]}]`,
			small, "each: the loops of one run may make 10 ", 4},
		{"one after the other", `steps: [{id: a, for_each: "${{ lists.range(6) }}", steps: [{id: s, tool: t.echo, with: {}}]}, {id: b, for_each: "${{ lists.range(6) }}", steps: [{id: s2, tool: t.echo, with: {}}]}]`,
			small, "b: the loops of one run may make 10 ", 6},
		{"while", `steps: [{id: w, while: "true", max: 1000, steps: [{id: s, tool: t.echo, with: {}}]}]`,
			small, "w: the loops of one run may make 10 ", 10},
		{"branches", `steps: [{id: p, parallel: {l: [{id: w, while: "true", max: 1000, steps: [{id: s, tool: t.echo, with: {}}]}], r: [{id: w2, while: "true", max: 1000, steps: [{id: s2, tool: t.echo, with: {}}]}]}}]`,
			small, "", 10},
		{"retries", `steps: [{id: s, tool: t.fail, with: {}, retry: {count: 100, wait: 1ms, on: [failed]}}]`,
			small, "s: one run may make 30 steps (workflows.limits.steps)", 31},
		{"retries of a loop", `steps: [{id: each, for_each: "${{ lists.range(4) }}", retry: {count: 100, wait: 1ms, on: [failed, limit]}, steps: [{id: s, tool: t.echo, with: {}}, {id: f, tool: t.fail, with: {}}]}]`,
			small, "each: the loops of one run may make 10 ", 4},
		{"what is caught", `steps: [{id: w, while: "true", max: 1000, steps: [{id: g, try: [{id: w2, while: "true", max: 2, steps: [{id: s, tool: t.echo, with: {}}]}], catch: [{id: c, tool: t.echo, with: {}}]}]}]`,
			small, "w: the loops of one run may make 10 ", 12},
		{"bytes", `steps: [{id: w, while: "true", max: 1000, steps: [{id: s, tool: t.long, with: {}}]}]`,
			workflow.Limits{Bytes: 1 << 20}, "w: the log of one run may have 1 MiB (workflows.limits.bytes)", 52},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := standard()
			d.tools["million"] = func(context.Context, map[string]any) (any, error) {
				return map[string]any{"all": make([]int, 1_000_000)}, nil
			}
			d.tools["long"] = func(context.Context, map[string]any) (any, error) { return strings.Repeat("x", 20_000), nil }
			e := engine(t, d, workflow.Options{Limits: row.limits, NoRetryDelay: true}, map[string]string{"flow": row.text,
				"inner": `steps: [{id: every, for_each: "${{ lists.range(4) }}", steps: [{id: s, tool: t.echo, with: {}}]}]`})
			r := run(t, e, workflow.Start{Workflow: "flow"})
			if r.Status != workflow.Failed || r.Error.Kind != "limit" || !strings.HasPrefix(r.Error.Step+": "+r.Error.Message, row.fault) && row.fault != "" || !strings.Contains(r.Error.Message, "workflows.limits.") {
				t.Errorf("it is %s: %+v", r.Status, r.Error)
			}
			if n := len(d.recordedCalls()); n > row.calls {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// A run that ended at a limit does what stands in finally, and goes on where it stood when it is resumed with a larger limit: what an
// engine counts after a restart is what was counted before.
func TestLimitsAfterRestart(t *testing.T) {
	t.Parallel()
	records, d := store.Memory(), standard()
	texts := map[string]string{"flow": `
steps:
  - id: a
    for_each: "${{ lists.range(6) }}"
    steps: [{id: s, tool: t.echo, with: {n: "${{ item }}"}}]
  - id: g
    try: [{id: b, for_each: "${{ lists.range(6) }}", steps: [{id: s2, tool: t.echo, with: {n: "${{ 10 + item }}"}}]}]
    finally: [{id: f, tool: t.echo, with: {last: true}}]`}
	first := engine(t, d, workflow.Options{Records: records, Limits: workflow.Limits{Items: 10}}, texts)
	r := run(t, first, workflow.Start{Workflow: "flow"})
	if got := d.recordedCalls(); r.Status != workflow.Failed || len(got) != 7 || got[6] != `echo {"last":true}` {
		t.Fatalf("%s: %+v, %q", r.Status, r.Error, got)
	}
	_ = first.Close()
	for _, row := range []struct {
		items int
		want  workflow.Status
	}{{11, workflow.Failed}, {12, workflow.OK}} {
		if got := resumedWith(t, d, records, texts, r.ID, row.items); got.Status != row.want {
			t.Errorf("%d items: %s: %+v", row.items, got.Status, got.Error)
		}
	}
	if calls := strings.Join(d.recordedCalls(), "\n"); strings.Count(calls, `{"n":`) != 12 {
		t.Error(calls)
	}
}

func resumedWith(t *testing.T, d workflow.Caller, records *store.Store, texts map[string]string, id string, items int) workflow.Run {
	t.Helper()
	e := engine(t, d, workflow.Options{Records: records, Limits: workflow.Limits{Items: items}}, texts)
	defer func() { _ = e.Close() }()
	if _, err := e.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r, err := e.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The time of a run is that in which it does something.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := standard()
		d.tools["slow"] = func(context.Context, map[string]any) (any, error) { time.Sleep(time.Hour); return nil, nil }
		e := engine(t, d, workflow.Options{Limits: workflow.Limits{Time: 150 * time.Minute}}, map[string]string{
			"flow": `steps: [{id: w, wait: {for: 100h}}, {id: a, tool: t.slow, with: {}}, {id: b, tool: t.slow, with: {}}, {id: h, tool: t.hang, with: {}}]`,
			"own":  `{timeout: 1h, steps: [{id: h, tool: t.hang, with: {}}]}`,
		})
		d.tools["hang"] = hang
		begun := time.Now()
		r := run(t, e, workflow.Start{Workflow: "flow"})
		if took := time.Since(begun); took != 102*time.Hour+30*time.Minute || r.Status != workflow.Failed || r.Error.Message != "the run took longer than 2h30m0s, waits excluded (workflows.limits.time)" {
			t.Errorf("%s after %v: %+v", r.Status, took, r.Error)
		}
		if r := run(t, e, workflow.Start{Workflow: "own"}); r.Error == nil || r.Error.Message != "took longer than 1h0m0s" {
			t.Errorf("%+v", r.Error)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Runs that the steps of a run start count for it.
func TestLimitsOfStartedRuns(t *testing.T) {
	t.Parallel()
	_, e := openAttached(t, func(*config.Config) {}, workflow.Limits{Items: 20})
	r := run(t, e, workflow.Start{Workflow: "fives"})
	if r.Status != workflow.Failed || r.Error.Kind != "limit" || !strings.Contains(r.Error.Message, "workflows.limits.items") {
		t.Errorf("%s: %+v", r.Status, r.Error)
	}
	all, err := e.Runs(t.Context(), workflow.Filter{Workflow: "five"})
	if err != nil || len(all) > 3 {
		data, _ := json.Marshal(all)
		t.Errorf("%v: %s", fmt.Sprint(len(all), err), data)
	}
}
