package gateway_test

import (
	"fmt"
	"slices"
	"testing"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/internal/tool"
)

// TestExecutions: pages of executions, the newest first, of one's own, for an operator of all; what comes later is there too.
func TestExecutions(t *testing.T) {
	t.Parallel()
	g := open(t, settings(nil), nil)
	var ids []string
	run := func(who string) {
		e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), who), execution.Program{Code: "let = ;", Language: "ts"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append([]string{e.ID}, ids...)
	}
	operator := tool.WithOperator(t.Context(), "ops")
	list := func(who string, f history.Filter) (got []string, total int) {
		t.Helper()
		ctx := operator
		if who != "" {
			ctx = tool.WithPrincipal(t.Context(), who)
		}
		page, err := g.History.Executions(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Executions {
			got = append(got, b.ID)
		}
		return got, page.Total
	}
	for range 2 { // the second time there is something to remember
		for i := range 4 {
			run([]string{"ann", "bob"}[i%2])
		}
		if got, n := list("", history.Filter{}); !slices.Equal(got, ids) || n != len(ids) {
			t.Errorf("%v, want %v", got, ids)
		}
	}
	for want, f := range map[string]history.Filter{
		fmt.Sprint(ids[2:4], 8):                                 {Offset: 2, Limit: 2},
		fmt.Sprint(ids[3:4], 1):                                 {ID: ids[3][4:]},
		fmt.Sprint([]string{ids[1], ids[3], ids[5], ids[7]}, 4): {Principal: "ann", Status: "failed", Language: "typescript"},
		"[] 0": {Status: "ok"},
	} {
		if got, n := list("", f); fmt.Sprint(got, n) != want {
			t.Errorf("%+v: %v %d, want %s", f, got, n, want)
		}
	}
	if got, n := list("ann", history.Filter{Limit: 1}); !slices.Equal(got, ids[1:2]) || n != 4 {
		t.Error(got, n)
	}
	if page, err := g.History.Executions(operator, history.Filter{}); err != nil || !slices.Equal(page.Principals, []string{"ann", "bob"}) {
		t.Errorf("%+v %v", page, err)
	}
}
