package workflow_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/workflow"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// A program that was interrupted and has no journal is run from its start only while it is certain that it never made a call: a journal
// may be removed later.
func TestJournalGone(t *testing.T) {
	t.Parallel()
	for pause, want := range map[time.Duration]workflow.Status{time.Minute: workflow.OK, 2 * time.Hour: workflow.Failed} {
		synctest.Test(t, func(t *testing.T) {
			records, d, anew := store.Memory(), standard(), 0
			texts := map[string]string{"flow": "steps: [{id: a, code: x()}]"}
			d.code = func(ctx context.Context, p execution.Program) (execution.Result, error) {
				<-ctx.Done()
				return execution.Result{}, context.Cause(ctx)
			}
			first := engine(t, d, workflow.Options{Records: records}, texts)
			r := begin(t, first, workflow.Start{Workflow: "flow"})
			synctest.Wait()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			d.code = func(_ context.Context, p execution.Program) (execution.Result, error) {
				if p.Resume != "" {
					return execution.Result{}, &tool.Error{Kind: tool.NotFound, Message: "there is no execution " + p.Resume, Err: history.ErrNoExecution}
				}
				anew++
				return value(p.ID, "1"), nil
			}
			second := engine(t, d, workflow.Options{Records: records}, texts)
			r, err := second.Wait(t.Context(), r.ID)
			if err != nil || r.Status != want || (anew > 0) != (want == workflow.OK) {
				t.Errorf("after %v it is %s and ran %d times anew: %+v, %v", pause, r.Status, anew, r.Error, err)
			}
			if want == workflow.Failed && !strings.Contains(r.Error.Message, "it may have been done") {
				t.Errorf("it says %s", r.Error.Message)
			}
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
