package gateway_test

import (
	"context"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/skills"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// TestFlowOfSkills: what was saved as a skill by whoever had read private and untrusted data brings the labels of it to whoever imports,
// loads or finds it, in either language, also after the gateway was started anew. A program that goes on with another has what that had read.
func TestFlowOfSkills(t *testing.T) {
	t.Parallel()
	opts := &gateway.Options{DataDir: t.TempDir(), Records: store.Memory()}
	g, _, cfg := firm(t, policy.Settings{Flow: policy.FlowDeny}, func(cfg *config.Config) {
		withLabels(cfg)
		withRunsc(t, cfg)
		cfg.Environments = map[string]config.Environment{"default": {Install: true}}
	}, opts)
	as := func(session string) context.Context {
		return tool.WithSession(tool.WithPrincipal(t.Context(), "ann"), session)
	}
	run := func(session string, p execution.Program) execution.Result {
		t.Helper()
		e, err := g.Executor.Execute(as(session), p)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	held := func(session string, want bool) {
		t.Helper()
		if got := strings.Contains(callAs(as(session), t, g, "web.post", "{}"), "policy refuses web.post (flow)"); got != want {
			t.Errorf("session %s: held is %v", session, got)
		}
	}
	const read = "from servers import web, firm\nweb.get(); firm.get_secret()\n"
	save := "from sallyport import save_skill\nsave_skill('%s', description='%s notes', code='def %s(): return \"the plan\"')\n"
	for _, name := range []string{"clean", "tainted"} {
		code := strings.ReplaceAll(save, "%s", name)
		if name == "tainted" {
			code = read + code
		}
		if e := run("save "+name, execution.Program{Code: code}); e.Failed() {
			t.Fatal(e.Text())
		}
	}
	tainted := run("before", execution.Program{Code: read + "def kept(): return 'the plan'\nprint(kept())"})
	if _, err := g.Skills.SaveSkill(as("from"), skills.SkillDraft{Name: "from-execution", Description: "made of it", From: tainted.ID}); err != nil {
		t.Fatal(err)
	}
	typescript := skills.SkillDraft{Name: "tainted-ts", Language: "typescript", Description: "of the other language", Code: "export function plan(): string { return 'the plan' }"}
	if _, err := g.Skills.SaveSkill(as("save tainted"), typescript); err != nil {
		t.Fatal(err)
	}
	failed := run("fails", execution.Program{Code: read + "raise ValueError('the plan')"})
	look := func(again string) {
		t.Helper()
		for session, code := range map[string]string{"clean": "from skills.clean import clean\nclean()", "tainted": "from skills.tainted import tainted\ntainted()", "from-execution": "import skills.from_execution"} {
			run(again+session, execution.Program{Code: code})
			held(again+session, session != "clean")
		}
		run(again+"ts", execution.Program{Language: "typescript", Code: "import { plan } from 'skills/tainted-ts';\nplan()"})
		held(again+"ts", true)
		for session, name := range map[string]string{"load": "tainted", "load clean": "clean"} {
			if _, err := g.Skills.LoadSkill(as(again+session), name, 0); err != nil {
				t.Fatal(err)
			}
			held(again+session, name == "tainted")
		}
		if _, err := g.Searcher.Search(as(again+"search"), toolsearch.Request{Query: "tainted notes"}); err != nil {
			t.Fatal(err)
		}
		held(again+"search", true)
		if _, err := g.Skills.ListSkills(as(again+"list"), ""); err != nil {
			t.Fatal(err)
		}
		held(again+"list", true)
	}
	for session, refused := range map[string]bool{"before": true, "nothing read": false} {
		_, err := g.Environments.InstallPackages(as(session), environments.Packages{Names: []string{"the plan"}})
		if got := err != nil && strings.Contains(err.Error(), "policy refuses install_dependencies (flow)"); err == nil || got != refused {
			t.Errorf("session %s installs: %v", session, err)
		}
	}
	look("")
	run("resumes", execution.Program{Resume: failed.ID, Code: "print(1)"})
	held("resumes", true)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	g = open(t, cfg, opts)
	g.Catalog.WaitConnected(t.Context())
	look("again ")
}
