package gateway_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/skills"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestSkillTestsThatNeedApproval: tests of a skill are no program that somebody follows, but what they call is decided like it.
func TestSkillTestsThatNeedApproval(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", testutil.ShortDir(t))
	cfg := withRunsc(t, settings(map[string]*site{"calc": newSite(t, calc)}))
	cfg.Approval.Wait = 100 * time.Millisecond
	cfg.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Name: "ask", Tools: []string{"calc.add"}, Then: policy.Ask}}}
	g := open(t, cfg, &gateway.Options{DataDir: t.TempDir()})
	g.Catalog.WaitConnected(t.Context())
	_, err := g.Skills.SaveSkill(t.Context(), skills.SkillDraft{
		Name: "sum", Description: "Adds.", Code: "from servers.calc import add\ndef sum(n: int) -> int:\n    return add(a=n, b=n)\n",
		Tests: "from skills.sum import sum\nsum(1)\n",
	})
	wantError(t, err, tool.Failed, "not saved: its tests fail", "needs approval")
	if got := mustRun(t.Context(), t, g, "python", "6 * 7"); got != "42" {
		t.Errorf("afterwards: %s", got)
	}
	if live := g.Executor.Running(t.Context()); len(live) != 0 {
		t.Errorf("still running: %+v", live)
	}
}

// TestProgramsThatSaveSkills: tests of skills run while all programs that may run wait for them.
func TestProgramsThatSaveSkills(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", testutil.ShortDir(t))
	cfg := withRunsc(t, settings(map[string]*site{"calc": newSite(t, calc)}))
	cfg.Sandbox.Parallel = 1
	g := open(t, cfg, &gateway.Options{DataDir: t.TempDir()})
	g.Catalog.WaitConnected(t.Context())
	var all sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		all.Go(func() {
			e, err := g.Executor.Execute(t.Context(), execution.Program{Timeout: 25 * time.Second, Code: `
from sallyport import save_skill
save_skill("` + name + `", code="def ` + name + `() -> int:\n    return 1\n", description="A number.", tests="from skills.` + name + ` import ` + name + `\nassert ` + name + `() == 1")[:5]`})
			if err != nil || e.Status != sandbox.OK || e.Value == nil || e.Value.Text != `"saved"` && e.Value.Text != "'saved'" {
				t.Errorf("%v\n%s", err, e.Text())
			}
		})
	}
	all.Wait()
	if running, waiting := g.Executor.Load(); running != 0 || waiting != 0 {
		t.Errorf("%d run and %d wait at the end", running, waiting)
	}
}

// TestPanicEndsItsCall: a fault of the gateway's own fails one call.
func TestPanicEndsItsCall(t *testing.T) {
	t.Parallel()
	g := open(t, settings(map[string]*site{"calc": newSite(t, calc)}), nil)
	if _, err := g.Catalog.Attach("shop", "panics", faulty{&shop{}}); err != nil {
		t.Fatal(err)
	}
	g.Catalog.WaitConnected(t.Context())
	_, err := call(t, g, "shop.tidy_garden", `{"name":"north"}`)
	wantError(t, err, tool.Internal, "may have been done")
	if _, err := call(t, g, "calc.add", `{"a":1,"b":2}`); err != nil {
		t.Error(err)
	}
}

// faulty is an upstream of this process that panics.
type faulty struct{ *shop }

func (faulty) Call(context.Context, tool.Call) (tool.Result, error) {
	var none *config.Config
	return tool.Result{Content: []tool.Content{{Text: string(none.Policy.Default)}}}, nil
}
