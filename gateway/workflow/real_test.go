package workflow_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/skills"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/gateway/workflow"
	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/skill"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// testGateway is a real gateway with an engine, on a directory that outlives both.
type testGateway struct {
	t       *testing.T
	dir     string
	cfg     config.Config
	records *store.Store
	gateway *gateway.Gateway
	*workflow.Engine
}

const realFlow = `
steps:
  - {id: a, tool: up.echo, with: {text: hi}}
  - id: program
    code: |
      from servers import up
      words = [up.echo(text=w)["text"] for w in given]
      result = {"words": words, "many": len(words)}
    with: {given: ["${{ steps.a.output.text }}", there]}
    returns: {type: object, required: [many]}
  - {id: ready, wait: {approval: {message: "send ${{ steps.program.output.many }} words?"}}}
  - {id: b, tool: up.echo, with: {text: "${{ steps.program.output.words.join(' ') }}, ${{ steps.ready.output.by }}"}}
outputs: {said: {value: "${{ steps.b.output.text }}"}}`

func newTestGateway(t *testing.T) *testGateway {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", testutil.ShortDir(t))
	h := &testGateway{t: t, dir: t.TempDir(), cfg: config.Default()}
	h.cfg.Sandbox.Runsc, h.cfg.Sandbox.Typecheck = testutil.Runsc(t), false
	h.cfg.Upstreams = []config.Upstream{{Name: "up", ID: "up", Command: self, Timeout: 20 * time.Second, Env: config.Secrets{upstreamtest.Var: upstreamtest.Good, "GORACE": "atexit_sleep_ms=0"}}}
	h.cfg.Policy = policy.Settings{On: true, Default: policy.Ask}
	return h
}

func (h *testGateway) open() {
	h.t.Helper()
	var err error
	if h.records, err = store.Open(filepath.Join(h.dir, "records"), nil); err != nil {
		h.t.Fatal(err)
	}
	if h.gateway, err = gateway.Open(&h.cfg, &gateway.Options{Records: h.records, DataDir: h.dir, NoPool: true, Snapshots: testutil.Snapshots(), Logger: testutil.Logger(h.t)}); err != nil {
		h.t.Fatal(err)
	}
	h.Engine = engine(h.t, h.gateway.Service(), workflow.Options{Records: h.records, Approvals: h.gateway.Approver, Catalog: h.gateway.Service(), Labels: h.gateway.Guard}, map[string]string{"flow": realFlow})
}

func (h *testGateway) close() {
	h.t.Helper()
	for _, end := range []func() error{h.Close, h.gateway.Close, h.records.Close} {
		if err := end(); err != nil {
			h.t.Error(err)
		}
	}
}

// answer allows what the run waits for.
func (h *testGateway) answer(r workflow.Run) {
	h.t.Helper()
	for _, p := range r.Waiting {
		if _, err := h.gateway.Approver.Answer(tool.WithOperator(h.t.Context(), "ann"), p.Approval, approvals.Answer{Allow: true, Scope: approval.Once}); err != nil {
			h.t.Errorf("%s: %v", p.Step, err)
		}
	}
}

// A run in a real gateway, with a real upstream, a real sandbox and a policy that asks about every call: each call is
// approved, and before that the gateway is closed and opened again. No call is made twice.
func TestReal(t *testing.T) { //nolint:paralleltest // it sets a variable of the environment
	h := newTestGateway(t)
	h.open()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begun, err := h.Start(ctx, workflow.Start{Workflow: "flow"})
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for range 20 {
		r, err := h.WaitSettled(ctx, begun.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status.Over() {
			if string(r.Outputs) != `{"said":"hi there, ann"}` {
				t.Errorf("it comes to %s: %+v", r.Outputs, r.Error)
			}
			break
		}
		if at := r.Waiting[0].Step; len(steps) == 0 || steps[len(steps)-1] != at || at == "program" {
			steps = append(steps, at)
		}
		h.close()
		h.open()
		if r, err = h.WaitSettled(ctx, begun.ID); err != nil {
			t.Fatal(err)
		}
		h.answer(r)
		waitForChange(t, h, r)
	}
	if got := strings.Join(steps, " "); got != "a program program ready b" {
		t.Errorf("it waited at %s", got)
	}
	h.close()
}

const skillFlow = `
steps:
  - {id: slug, skill: text.slugify, with: {sep: _, text: "Two Words"}}
  - {id: times, skill: numbers.times, with: {n: 6, by: 7}}
  - {id: none, try: [{id: x, skill: text.shout, with: {text: a}}], catch: []}
outputs: {slug: "${{ steps.slug.output }}", times: "${{ steps.times.output }}"}`

// A step can be a function of a skill, in either language, run in a sandbox as any program. One that is not there fails the step.
func TestSkillSteps(t *testing.T) { //nolint:paralleltest // it sets a variable of the environment
	h := newTestGateway(t)
	h.open()
	defer h.close()
	for _, draft := range []skills.SkillDraft{
		{Name: "text", Language: "python", Description: "texts", Code: "def slugify(text: str, sep: str = '-') -> str:\n    return sep.join(text.lower().split())\n"},
		{Name: "numbers", Language: "typescript", Description: "numbers", Code: "export function times(n: number, by: number): number { return n * by }\n"},
	} {
		if _, err := h.gateway.Skills.SaveSkill(t.Context(), draft); err != nil {
			t.Fatal(err)
		}
	}
	e := engine(t, h.gateway.Service(), workflow.Options{Catalog: h.gateway.Service()}, map[string]string{"flow": skillFlow})
	r := run(t, e, workflow.Start{Workflow: "flow"})
	if got := string(r.Outputs); r.Status != workflow.OK || got != `{"slug":"two_words","times":42}` {
		t.Errorf("%s: %s %+v", r.Status, got, r.Error)
	}
	if got := trace(t, e, r.ID, workflow.Ended); !slices.Contains(got, "ended none.try.x failed") {
		t.Errorf("the steps ended as %q", got)
	}
}

// A run of a principal in none of a skill's groups fails as if there were no such skill, also in its code steps.
func TestSkillStepsOfGroups(t *testing.T) { //nolint:paralleltest // it sets a variable of the environment
	h := newTestGateway(t)
	h.open()
	defer h.close()
	s := skill.New(filepath.Join(h.dir, "skills"))
	one := skill.Skill{Front: skill.Front{Name: "payroll", Description: "pays", Language: skill.Python, Groups: []string{"finance"}}, Files: map[string][]byte{"skill.py": []byte("def pay(): return 'wages'\n")}}
	if _, err := s.Propose("alice", one); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approve("payroll", ""); err != nil {
		t.Fatal(err)
	}
	flows := map[string]string{}
	for _, name := range []string{"payroll", "pyjamas"} {
		flows["code_"+name] = "steps: [{id: s, code: \"from skills." + name + " import pay\\npay()\"}]\noutputs: {said: '${{ steps.s.output }}'}"
		flows["skill_"+name] = "steps: [{id: s, skill: " + name + ".pay}]\noutputs: {said: '${{ steps.s.output }}'}"
	}
	e := engine(t, h.gateway.Service(), workflow.Options{Catalog: h.gateway.Service()}, flows)
	ends := func(who context.Context, name string) string {
		begun, err := e.Start(who, workflow.Start{Workflow: name})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Wait(who, begun.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.Error == nil {
			return string(r.Outputs)
		}
		_, skill, _ := strings.Cut(name, "_")
		return strings.ReplaceAll(r.Error.Message, skill, "NAME")
	}
	bob := tool.WithPrincipal(t.Context(), "oauth:bob")
	for _, kind := range []string{"code_", "skill_"} {
		if got := ends(t.Context(), kind+"payroll"); got != `{"said":"wages"}` {
			t.Errorf("%s of a local caller: %s", kind, got)
		}
		if got, want := ends(bob, kind+"payroll"), ends(bob, kind+"pyjamas"); got != want || !strings.Contains(got, "there is no skill NAME") {
			t.Errorf("%s of bob ends as\n%s\nand with a skill that is not there as\n%s", kind, got, want)
		}
	}
}

// waitForChange waits until a run does not wait for what it did.
func waitForChange(t *testing.T, h *testGateway, before workflow.Run) {
	t.Helper()
	testutil.Eventually(t, "the run goes on", 20*time.Second, func() bool {
		r, err := h.Run(t.Context(), before.ID)
		return err == nil && (len(r.Waiting) == 0 || len(before.Waiting) == 0 || r.Waiting[0].Approval != before.Waiting[0].Approval)
	})
}
