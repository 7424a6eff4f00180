package workflow_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/internal/tool"
)

// TestPrune: runs that are over go when they have been kept for as long as they are to be, and runs that wait stay.
func TestPrune(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, standard(), workflow.Options{Retention: 48 * time.Hour}, map[string]string{
			"flow": `steps: [{id: a, tool: t.echo}]`, "long": `steps: [{id: w, wait: {for: 1000h}}]`,
		})
		over := run(t, e, workflow.Start{Workflow: "flow"})
		waits, err := e.Start(t.Context(), workflow.Start{Workflow: "long"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(47 * time.Hour)
		if _, err := e.Run(t.Context(), over.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(8 * time.Hour)
		if _, err := e.Run(t.Context(), over.ID); tool.AsError(err).Kind != tool.NotFound {
			t.Errorf("it is still there: %v", err)
		}
		if r, err := e.Run(t.Context(), waits.ID); err != nil || r.Status != workflow.Waiting {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
