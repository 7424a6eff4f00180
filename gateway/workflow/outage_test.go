package workflow_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/catalog"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/internal/approval"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
)

// plainHost is a gateway without labels, whose calls wait for people for a minute.
type plainHost struct{}

func (plainHost) SessionOrigins(context.Context) []toolcall.Origin         { return nil }
func (plainHost) AddOrigins(context.Context, []toolcall.Origin)            {}
func (plainHost) ApprovalTimeout(context.Context, tool.Call) time.Duration { return time.Minute }
func (plainHost) Closing() bool                                            { return false }

// TestCancelElsewhere: any engine that shares the store cancels a run, also one that waits in the queue.
func TestCancelElsewhere(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	texts := map[string]string{"flow": "{concurrency: 1, steps: [{id: w, wait: {for: 1h}}]}"}
	one := engine(t, standard(), workflow.Options{Records: storetest.Connect(t, c.Server(""))}, texts)
	two := engine(t, standard(), workflow.Options{Records: storetest.Connect(t, c.Server(""))}, texts)
	var runs []workflow.Run
	testutil.Eventually(t, "two runs", time.Minute, func() bool {
		r, err := one.Start(t.Context(), workflow.Start{Workflow: "flow"})
		if err == nil {
			runs = append(runs, r)
		}
		return len(runs) == 2
	})
	is := func(id string, want workflow.Status) func() bool {
		return func() bool {
			r, err := two.Run(t.Context(), id)
			return err == nil && r.Status == want
		}
	}
	testutil.Eventually(t, "the first waits", time.Minute, is(runs[0].ID, workflow.Waiting))
	if _, err := two.Resume(t.Context(), runs[0].ID); err == nil || !strings.Contains(err.Error(), "active on another gateway") {
		t.Errorf("another engine resumes a run that waits: %v", err)
	}
	for _, r := range []workflow.Run{runs[1], runs[0]} {
		if err := two.Cancel(tool.WithPrincipal(t.Context(), "eve"), r.ID); err == nil {
			t.Error("a run of another principal is canceled")
		}
		if err := two.Cancel(t.Context(), r.ID); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, "the end of the run", time.Minute, is(r.ID, workflow.Canceled))
		if err := two.Cancel(t.Context(), r.ID); err != nil {
			t.Errorf("a run that was canceled: %v", err)
		}
	}
	if err := one.Close(); err != nil {
		t.Error(err)
	}
}

// TestExposedOutage: the call of an exposed workflow has started a run. While the servers of the store are away, it waits: if it said that
// nothing was done, its caller would start another run.
func TestExposedOutage(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	records := storetest.Connect(t, c.Server(""))
	p, d := &people{}, standard()
	var exposed catalog.InProcess
	d.tools["child"] = func(ctx context.Context, _ map[string]any) (any, error) {
		result, err := exposed.Call(ctx, tool.Call{Tool: tool.ID{Upstream: toolcall.WorkflowsID, Name: "sure"}})
		return result.Structured, err
	}
	e := engine(t, d, workflow.Options{Records: records, Approvals: p}, map[string]string{
		"outer": "steps: [{id: c, tool: t.child}]", "sure": `{expose: true, steps: [{id: x, wait: {approval: {message: "Really?"}}}]}`,
	})
	exposed = e.AsUpstream(plainHost{})
	var begun workflow.Run
	var err error
	testutil.Eventually(t, "a run", time.Minute, func() bool {
		begun, err = e.Start(t.Context(), workflow.Start{Workflow: "outer"})
		return err == nil
	})
	testutil.Eventually(t, "the question", time.Minute, func() bool {
		runs, err := e.Runs(t.Context(), workflow.Filter{Workflow: "sure"})
		return err == nil && len(runs) == 1 && runs[0].Status == workflow.Waiting
	})
	c.Signal(t, 0, syscall.SIGSTOP)
	testutil.Eventually(t, "the store does not answer", time.Minute, func() bool { return records.Available() != nil })
	for question := range p.questions() {
		p.say(question, approval.Allowed)
	}
	time.Sleep(time.Second)
	c.Signal(t, 0, syscall.SIGCONT)
	var r workflow.Run
	testutil.Eventually(t, "the end of the run", time.Minute, func() bool {
		r, err = e.Run(t.Context(), begun.ID)
		for question, state := range p.questions() {
			if state == approval.Waiting {
				p.say(question, approval.Allowed)
			}
		}
		return err == nil && r.Status.Over()
	})
	runs, err := e.Runs(t.Context(), workflow.Filter{Workflow: "sure"})
	if err != nil || len(runs) != 1 || r.Status != workflow.OK {
		t.Errorf("it is %s: %+v; %d runs were started: %v", r.Status, r.Error, len(runs), err)
	}
}
