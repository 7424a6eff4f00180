package gateway_test

import (
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestBudgets: calls of programs and of clients count together, what the policy refuses does not, the rest of the processor time stops a
// program, and refusals are in the audit log.
func TestBudgets(t *testing.T) {
	t.Parallel()
	data, records := t.TempDir(), store.Memory()
	defer records.Close()
	up := newSite(t, company)
	cfg := withRunsc(t, settings(map[string]*site{"firm": up}))
	cfg.Audit = config.Default().Audit
	cfg.Policy = policy.Settings{On: true, Default: policy.Deny, Rules: []policy.Rule{{Name: "get", Tools: []string{"firm.get"}, Then: policy.Allow}}}
	cfg.Budgets = []config.Budget{{Name: "day", Principals: []string{"ada"}, Calls: 3, CPU: 500 * time.Millisecond}}
	g := open(t, cfg, &gateway.Options{DataDir: data, Records: records})
	g.Catalog.WaitConnected(t.Context())
	ada := tool.WithPrincipal(t.Context(), "token:ada")
	get := tool.Call{Tool: tool.ID{Upstream: "firm", Name: "get"}, Args: []byte(`{}`)}

	_, err := g.Call(ada, tool.Call{Tool: tool.ID{Upstream: "firm", Name: "drop"}, Args: []byte(`{}`)})
	wantError(t, err, tool.Denied, "policy refuses")
	if _, err = g.Call(ada, get); err != nil {
		t.Fatal(err)
	}
	e, err := g.Executor.Execute(ada, execution.Program{Code: `from servers.firm import get
for i in range(3):
    try:
        get()
        print("made")
    except Exception as e:
        print(e.kind, e)
while True: pass`})
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, e, sandbox.OutOfCPU, "made\nmade\nlimit budget \"day\" is used up: 3 of 3 calls today", "do not try again today", `note: that was the rest of the processor time in budget "day"`)
	if e.CPU < 400*time.Millisecond || e.CPU > 5*time.Second {
		t.Errorf("it used %s of processor time", e.CPU)
	}
	if n := up.hits.Load(); n != 3 {
		t.Errorf("the upstream saw %d calls", n)
	}
	_, err = g.Executor.Execute(ada, execution.Program{Code: "1"})
	wantError(t, err, tool.Limit, "of 0.5 s of processor time today")
	if _, err = g.Call(tool.WithPrincipal(t.Context(), "token:bob"), get); err != nil {
		t.Error(err)
	}

	report, err := g.Service().BudgetReport(ada)
	if err != nil || len(report.Budgets) != 1 || report.Budgets[0].Calls.Used != 3 || report.Budgets[0].CPU.Used < 400 {
		t.Errorf("the report is %+v, %v", report, err)
	}
	denied, refused := 0, 0
	for _, r := range readAudit(t, data) {
		switch {
		case r.Kind == audit.Call && r.Decision == "deny" && r.Rule == "budget day" && r.Principal == "token:ada":
			denied++
		case r.Kind == audit.ExecutionEnd && r.Outcome == "not_run:limit" && r.Rule == "budget day":
			refused++
		}
	}
	if denied != 1 || refused != 1 {
		t.Errorf("the audit log has %d refused calls and %d refused programs", denied, refused)
	}
}
