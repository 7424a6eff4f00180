package dashboard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/dashboard"
	"sallyport/gateway/history"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
)

// askers is a gateway with programs that were stopped for an approval: one of ada, and one that was resumed.
type askers struct{ house }

func (askers) Approvals(context.Context) ([]approvals.Approval, error) {
	of := func(id, execution string, state approval.State) approvals.Approval {
		return approvals.Approval{ID: id, State: state, Asked: noon, Answered: noon, Expires: noon.Add(time.Hour), Request: approval.Request{Principal: "ada", Tool: "crm.delete_order", Execution: execution}}
	}
	return []approvals.Approval{of("a-1", "e-held", approval.Waiting), of("a-2", "e-held", approval.Allowed), of("a-3", "e-resumed", approval.Allowed), of("a-4", "e-gone", approval.Allowed)}, nil
}

func (askers) Record(_ context.Context, id string) (history.Record, error) {
	if id == "e-gone" {
		return history.Record{}, &tool.Error{Kind: tool.NotFound}
	}
	code := "import crm\n# delete_order is not called here\nfor n in range(3):\n  crm.deleteOrder(id=n)\n  x = delete_order (" + evil + ")\n"
	return history.Record{ID: id, Principal: "ada", Title: "Clean up " + evil, Status: "held", Code: code, Started: noon}, nil
}

func (askers) JournalCalls(_ context.Context, id string, _, _ int) (history.JournaledCalls, error) {
	if id == "e-resumed" {
		return history.JournaledCalls{Resumed: "e-2"}, nil
	}
	return history.JournaledCalls{}, nil
}

// TestAskers: an approval shows the program that asks for it, with the lines that make the call, and how to resume it after an answer.
func TestAskers(t *testing.T) {
	d := dashboard.New(askers{}, nil)
	for who, resumes := range map[string]int{"op": 0, "ada": 1} {
		page := send(t, d, who, "/ui/approvals", nil).Body.String()
		checkHarmless(t, page)
		if n := strings.Count(page, `class="l marked"`); n != 2 || strings.Count(page, "The program") != 1 {
			t.Errorf("%s: %d lines are marked in\n%s", who, n, page)
		}
		if n := strings.Count(page, "Tell the model:"); n != 1 || !strings.Contains(page, `resume=&#34;e-held&#34;`) {
			t.Errorf("%s: told %d times in\n%s", who, n, page)
		}
		if n := strings.Count(page, `name="resume" value="e-held"`); n != resumes {
			t.Errorf("%s: %d forms to resume, want %d", who, n, resumes)
		}
	}
}
