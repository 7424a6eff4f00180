package workflow_test

import (
	"context"
	"testing"

	"sallyport/gateway/workflow"
	"sallyport/internal/telemetry"
	"sallyport/internal/telemetry/telemetrytest"
)

// TestRunsAreTraced: a run is a span within that of whoever starts it, its steps are spans in it, calls are made within theirs.
func TestRunsAreTraced(t *testing.T) {
	t.Parallel()
	collector := telemetrytest.New(t)
	watched, flush := collector.Open(t)
	made := make(chan string, 8)
	d := &stubCaller{tools: map[string]func(context.Context, map[string]any) (any, error){"get": func(ctx context.Context, _ map[string]any) (any, error) {
		_, span := telemetry.IDs(ctx)
		made <- span
		return 1, nil
	}}}
	e := engine(t, d, workflow.Options{Telemetry: watched}, map[string]string{"w": `
name: w
steps:
  - id: both
    parallel:
      left: [{id: a, tool: x.get}]
  - {id: bad, tool: x.get, if: "1 / 0 == 1"}
`})
	ctx, span := watched.Start(t.Context(), telemetry.Server, "POST", "/start")
	begun, err := e.Start(ctx, workflow.Start{Workflow: "w"})
	span.End("")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Wait(t.Context(), begun.ID); err != nil || r.Status != workflow.Failed {
		t.Fatal(err, r)
	}
	_ = e.Close()
	flush()
	start, run, both, a := collector.Span("POST /start"), collector.Span("invoke_workflow w"), collector.Span("step both"), collector.Span("step a")
	if run.Parent != start.ID || run.Trace != start.Trace || both.Parent != run.ID || a.Parent != both.ID || a.ID != <-made {
		t.Errorf("the tree is\n%+v\n%+v\n%+v\n%+v", start, run, both, a)
	}
	if !run.Failed || run.Attributes["sallyport.run.id"] != begun.ID || both.Failed || a.Attributes["sallyport.step.path"] != "both.left.a" {
		t.Errorf("the spans say\n%+v\n%+v", run, a)
	}
	if m := collector.Metric("sallyport.workflow.runs"); m == nil || m.GetSum().DataPoints[0].GetAsInt() != 1 {
		t.Errorf("the run is counted as %v", m)
	}
}
