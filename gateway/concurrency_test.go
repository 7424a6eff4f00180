package gateway_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// TestLimitAtOnce: of 32 calls at once as many pass as the limit says, whatever faces and spellings they come by.
func TestLimitAtOnce(t *testing.T) {
	t.Parallel()
	g, sites, _ := firm(t, policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{
		{Name: "few", Tools: []string{"firm.get"}, Then: policy.Limit, Limit: &policy.Limits{Calls: 5, Per: "day"}},
		{Name: "money", Tools: []string{"firm.post"}, Then: policy.Limit, Limit: &policy.Limits{Calls: 100, Per: "day", Cost: "args.n"}},
	}}, nil, nil)
	race := func(id string, args ...string) (passed int32) {
		var work sync.WaitGroup
		var n atomic.Int32
		before := sites["firm"].hits.Load()
		for i := range 32 {
			work.Go(func() {
				at, err := tool.ParseID(id)
				if err != nil {
					t.Error(err)
					return
				}
				ctx := tool.WithSession(t.Context(), fmt.Sprint(i))
				_, err = g.Call(ctx, tool.Call{Tool: at, Args: json.RawMessage(args[i%len(args)])})
				if err == nil {
					n.Add(1)
				} else if tool.AsError(err).Kind != tool.Limit {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if hits := sites["firm"].hits.Load() - before; hits != n.Load() {
			t.Errorf("%s: %d calls have a result, the upstream saw %d", id, n.Load(), hits)
		}
		return n.Load()
	}
	if n := race("firm.get", `{}`); n != 5 {
		t.Errorf("%d calls passed a limit of 5", n)
	}
	if n := race("firm.post", `{"n":20}`, `{"n":20.0}`, `{"n":2e1}`, `{"n":0.2e2}`); n != 5 {
		t.Errorf("%d calls of 20 passed a limit of 100", n)
	}
}

// TestAnswersAtOnce: of several answers at once one counts, and the call goes by it.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	g, sites := guardedOffice(t, 10*time.Millisecond)
	for round := range 8 {
		ctx := tool.WithPrincipal(tool.WithSession(t.Context(), "s"), fmt.Sprint("p", round))
		note := tool.Call{Tool: tool.ID{Upstream: "notes", Name: "create_note"}, Args: json.RawMessage(`{"title":"a"}`)}
		if _, err := g.Call(ctx, note); err == nil {
			t.Fatal("nobody was asked")
		}
		waiting, err := g.Approver.Approvals(ctx)
		if err != nil || len(waiting) != 1 {
			t.Fatalf("%+v, %v", waiting, err)
		}
		before := sites["notes"].hits.Load()
		won := make(chan bool, 4)
		var work sync.WaitGroup
		for i := range cap(won) {
			work.Go(func() {
				allow := i%2 == 0
				if _, err := g.Approver.Answer(tool.WithOperator(t.Context(), fmt.Sprint("op", i)), waiting[0].ID, approvals.Answer{Allow: allow}); err == nil {
					won <- allow
				} else if tool.AsError(err).Kind != tool.Invalid {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if len(won) != 1 {
			t.Fatalf("%d of 4 answers counted", len(won))
		}
		_, err = g.Call(ctx, note)
		if hits := sites["notes"].hits.Load() - before; (hits == 1) != (<-won) || (err == nil) != (hits == 1) {
			t.Errorf("%d calls after the answer, %v", hits, err)
		}
	}
}
