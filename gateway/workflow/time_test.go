package workflow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// hang is a tool that waits for its context's end.
func hang(ctx context.Context, _ map[string]any) (any, error) {
	<-ctx.Done()
	return nil, tool.AsError(context.Cause(ctx))
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		took       time.Duration
		status     workflow.Status
		fault      string
	}{
		{"a wait", `steps: [{id: w, wait: {for: 36h}}]`, 36 * time.Hour, workflow.OK, ""},
		{"until", `steps: [{id: w, wait: {until: "2000-01-01T02:00:00+01:00"}}]`, time.Hour, workflow.OK, ""},
		{"retries", `steps: [{id: a, tool: t.break, retry: {count: 3, wait: 2s, max: 5s}}]`, (2 + 4 + 5) * time.Second, workflow.Failed, "a: upstream: gone"},
		{"long rests", `steps: [{id: a, tool: t.break, retry: {count: 1, wait: 1h}}]`, time.Hour, workflow.Failed, "a: upstream: gone"},
		{"another kind", `steps: [{id: a, tool: t.fail, retry: {count: 3}}]`, 0, workflow.Failed, "a: failed: "},
		{"a kind by name", `steps: [{id: a, tool: t.fail, retry: {count: 1, wait: 1s, on: [failed]}}]`, time.Second, workflow.Failed, "a: failed: "},
		{"a timeout", `steps: [{id: a, tool: t.hang, timeout: 5s}]`, 5 * time.Second, workflow.Failed, "a: timeout: took longer than 5s"},
		{"timeouts and retries", `steps: [{id: a, tool: t.hang, timeout: 5s, retry: {count: 1, wait: 1s}}]`, 11 * time.Second, workflow.Failed, "a: timeout: "},
		{"the run's", "timeout: 10s\nsteps: [{id: a, tool: t.hang}]", 10 * time.Second, workflow.Failed, "a: timeout: took longer than 10s"},
		{"without waits", "timeout: 10s\nsteps: [{id: w, wait: {for: 1h}}, {id: a, tool: t.hang, timeout: 4s}]", time.Hour + 4*time.Second, workflow.Failed, "a: timeout: took longer than 4s"},
		{"a group's", `steps: [{id: g, timeout: 3s, try: [{id: a, tool: t.hang}], catch: [{id: c, tool: t.echo}]}]`, 3 * time.Second, workflow.Failed, "g: timeout: took longer than 3s"},
		{"beside a failure", `steps: [{id: both, parallel: {l: [{id: a, tool: t.hang}], r: [{id: w, wait: {for: 2s}}, {id: f, tool: t.fail}]}}]`,
			2 * time.Second, workflow.Failed, "both.r.f: failed: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := standard()
				d.tools["hang"] = hang
				e := engine(t, d, workflow.Options{}, map[string]string{"flow": row.text})
				begun := time.Now()
				r := run(t, e, workflow.Start{Workflow: "flow"})
				if took := time.Since(begun); took != row.took || r.Status != row.status {
					t.Errorf("it is %s after %v, not %s after %v", r.Status, took, row.status, row.took)
				}
				if r.Error != nil {
					if got := r.Error.Step + ": " + string(r.Error.Kind) + ": " + r.Error.Message; row.fault == "" || !strings.HasPrefix(got, row.fault) {
						t.Errorf("it failed with %q, not %q", got, row.fault)
					}
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A cancellation stops what is under way, and what stands in finally runs.
func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := standard()
		d.tools["hang"] = hang
		e := engine(t, d, workflow.Options{}, map[string]string{"flow": `
steps:
  - id: guard
    try: [{id: a, tool: t.hang}]
    catch: [{id: c, tool: t.echo, with: {caught: true}}]
    finally: [{id: f, tool: t.echo, with: {last: true}}]
  - {id: never, tool: t.echo}`})
		begun, err := e.Start(t.Context(), workflow.Start{Workflow: "flow"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := e.Cancel(t.Context(), begun.ID); err != nil {
			t.Fatal(err)
		}
		r, err := e.Wait(t.Context(), begun.ID)
		if err != nil || r.Status != workflow.Canceled {
			t.Errorf("it is %s: %v", r.Status, err)
		}
		if diff := cmp.Diff([]string{"hang {}", `echo {"last":true}`}, d.recordedCalls()); diff != "" {
			t.Errorf("calls: %s", diff)
		}
		want := []string{"ended guard.try.a canceled", `ended guard.finally.f ok {"last":true}`, "ended guard canceled"}
		if diff := cmp.Diff(want, trace(t, e, r.ID, workflow.Ended)); diff != "" {
			t.Errorf("ends: %s", diff)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Runs of one workflow wait for their turn, are refused, or make room, as it says.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ full, want string }{
		{"queue", "ok ok ok after 3s"}, {"refuse", "ok limit limit after 1s"}, {"cancel", "canceled canceled ok after 1s"},
	} {
		t.Run(row.full, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := engine(t, standard(), workflow.Options{}, map[string]string{"flow": "concurrency: {limit: 1, full: " + row.full + "}\nsteps: [{id: w, wait: {for: 1s}}]"})
				begun, got := time.Now(), []string{}
				var ids []string
				for range 3 {
					r, err := e.Start(t.Context(), workflow.Start{Workflow: "flow"})
					if err != nil {
						r.ID = string(tool.AsError(err).Kind)
					}
					ids = append(ids, r.ID)
					synctest.Wait()
				}
				for _, id := range ids {
					if r, err := e.Wait(t.Context(), id); err == nil {
						id = string(r.Status)
					}
					got = append(got, id)
				}
				if got := strings.Join(got, " ") + " after " + time.Since(begun).String(); got != row.want {
					t.Errorf("they end %s, not %s", got, row.want)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// At most so many runs go on at once; those that wait do not count.
func TestRunsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := standard()
		d.tools["hang"] = hang
		e := engine(t, d, workflow.Options{MaxRuns: 1}, map[string]string{"waits": "steps: [{id: w, wait: {for: 1h}}]", "hangs": "steps: [{id: h, tool: t.hang, timeout: 1m}]"})
		start := func(name string) string {
			r, err := e.Start(t.Context(), workflow.Start{Workflow: name})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			r, err = e.Run(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			return string(r.Status)
		}
		if got := []string{start("waits"), start("hangs"), start("hangs")}; !slices.Equal(got, []string{"waiting", "running", "queued"}) {
			t.Errorf("they are %s", got)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An engine that is closed leaves its runs where they are, and the next goes on with them.
func TestReopen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records, d := store.Memory(), standard()
		texts := map[string]string{"flow": `
steps:
  - {id: a, tool: t.echo, with: {x: 1}}
  - {id: w, wait: {for: 1h}}
  - {id: b, tool: t.echo, with: {x: "${{ steps.a.output.x + 1 }}"}}
outputs: {x: {value: "${{ steps.b.output.x }}"}}`}
		first := engine(t, d, workflow.Options{Records: records}, texts)
		begun, err := first.Start(t.Context(), workflow.Start{Workflow: "flow"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		delete(texts, "flow") // the run keeps its definition
		second := engine(t, d, workflow.Options{Records: records}, texts)
		r, err := second.Wait(t.Context(), begun.ID)
		if err != nil || string(r.Outputs) != `{"x":2}` {
			t.Errorf("it comes to %s: %v, %v", r.Outputs, r.Error, err)
		}
		if took := time.Since(begun.Started); took != time.Hour {
			t.Errorf("it took %v", took)
		}
		if diff := cmp.Diff([]string{`echo {"x":1}`, `echo {"x":2}`}, d.recordedCalls()); diff != "" {
			t.Errorf("calls: %s", diff)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What was resting before a retry when its engine was closed rests on, and counts what it had tried.
func TestRestOverReopen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records, d := store.Memory(), standard()
		texts := map[string]string{"flow": "steps: [{id: a, tool: t.break, retry: {count: 1, wait: 1h}}]"}
		first := engine(t, d, workflow.Options{Records: records}, texts)
		begun, err := first.Start(t.Context(), workflow.Start{Workflow: "flow"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := engine(t, d, workflow.Options{Records: records}, texts)
		r, err := second.Wait(t.Context(), begun.ID)
		if err != nil || r.Status != workflow.Failed || time.Since(begun.Started) != time.Hour || len(d.recordedCalls()) != 2 {
			t.Errorf("it is %s after %v and %d calls: %v", r.Status, time.Since(begun.Started), len(d.recordedCalls()), err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRefusedByStore: a step that was refused because the store of records does not answer is tried again until it does. Nothing else that
// is busy is.
func TestRefusedByStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, refusals := standard(), 4
		d.tools["put"] = func(context.Context, map[string]any) (any, error) {
			if refusals--; refusals >= 0 {
				return nil, toolcall.Unavailable(fmt.Errorf("write: %w", store.ErrUnreachable))
			}
			return "done", nil
		}
		d.tools["busy"] = func(context.Context, map[string]any) (any, error) {
			return nil, &tool.Error{Kind: tool.Busy, Message: "too many calls"}
		}
		e := engine(t, d, workflow.Options{}, map[string]string{"flow": "steps: [{id: p, tool: t.put}, {id: b, tool: t.busy}]"})
		begun := time.Now()
		r := run(t, e, workflow.Start{Workflow: "flow"})
		if r.Error == nil || r.Error.Step != "b" || r.Error.Message != "too many calls" || time.Since(begun) != 8*time.Second {
			t.Errorf("it is %s after %v: %+v", r.Status, time.Since(begun), r.Error)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
