package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/toolsearch"
	"sallyport/gateway/workflow"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// exposedFlows need no upstream.
func exposedFlows() map[string]string {
	return map[string]string{
		"double": `{description: Double every number of a list, expose: true, inputs: {numbers: {type: array, items: {type: number}}}, steps: [{id: x, wait: {for: 1ms}}],
 outputs: {doubled: {type: array, items: {type: number}, value: "${{ inputs.numbers.map(n, n * 2) }}"}}}`,
		"fails":  `{expose: true, steps: [{id: x, tool: nobody.there}]}`,
		"sure":   `{expose: true, steps: [{id: x, wait: {approval: {message: "Really?"}}}], outputs: {by: {value: "${{ steps.x.output.by }}"}}}`,
		"slow":   `{expose: true, steps: [{id: x, wait: {for: 1h}}]}`,
		"itself": `{expose: true, steps: [{id: x, tool: workflows.itself}]}`,
		"alone":  `{expose: true, concurrency: 1, steps: [{id: x, tool: workflows.alone}]}`,
		"many":   `{steps: [{id: each, for_each: "${{ [1, 2, 3, 4] }}", concurrency: 4, steps: [{id: x, tool: workflows.double, with: {numbers: ["${{ item }}"]}}]}]}`,
		"fives":  `{steps: [{id: each, for_each: "${{ lists.range(6) }}", steps: [{id: x, tool: workflows.five}]}]}`,
		"five":   `{expose: true, steps: [{id: each, for_each: "${{ lists.range(5) }}", steps: [{id: x, if: "false", wait: {for: 1ms}}]}]}`,
		"coded":  `{expose: true, inputs: {n: integer}, steps: [{id: x, code: "n + 1", with: {n: "${{ inputs.n }}"}}], outputs: {sum: {type: integer, value: "${{ steps.x.output }}"}}}`,
		"hidden": `{steps: [{id: x, wait: {for: 1ms}}]}`,
	}
}

// openAttached is a gateway with an engine whose workflows are functions.
func openAttached(t *testing.T, change func(*config.Config), limits ...workflow.Limits) (*gateway.Gateway, *workflow.Engine) {
	t.Helper()
	cfg := config.Default()
	change(&cfg)
	records := store.Memory()
	g, err := gateway.Open(&cfg, &gateway.Options{Records: records, NoPool: true, Snapshots: testutil.Snapshots()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	opts := workflow.Options{Records: records, Approvals: g.Approver, Catalog: g.Service(), Labels: g.Guard, MaxRuns: 2}
	for _, one := range limits {
		opts.Limits = one
	}
	e := engine(t, g.Service(), opts, exposedFlows())
	if _, err := g.Catalog.Attach(toolcall.WorkflowsID, "reviewed workflows", e.AsUpstream(g.Service())); err != nil {
		t.Fatal(err)
	}
	g.Catalog.WaitConnected(t.Context())
	return g, e
}

func callExposed(ctx context.Context, g *gateway.Gateway, name, args string) (tool.Result, error) {
	return g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: toolcall.WorkflowsID, Name: name}, Args: json.RawMessage(args)})
}

// TestOwn: exposed workflows are functions, whose calls are runs.
func TestOwn(t *testing.T) {
	t.Parallel()
	g, e := openAttached(t, func(cfg *config.Config) {
		cfg.Approval.Wait = 100 * time.Millisecond
		cfg.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Name: "no slow ones", Tools: []string{"workflows.slow"}, When: `principal == "eve"`, Then: policy.Deny}}}
	})
	ctx := tool.WithPrincipal(t.Context(), "ann")
	found, err := g.Searcher.Search(ctx, toolsearch.Request{Query: "double every number"})
	if err != nil || len(found.Tools) == 0 || found.Tools[0].ID.String() != "workflows.double" || strings.Contains(found.Text(), "hidden") {
		t.Errorf("%v\n%s", err, found.Text())
	}
	result, err := callExposed(ctx, g, "double", `{"numbers":[1,3]}`)
	if err != nil || string(result.Structured) != `{"doubled":[2,6]}` {
		t.Errorf("%s, %v", result.Structured, err)
	}
	runs, err := e.Runs(ctx, workflow.Filter{Workflow: "double"})
	if err != nil || len(runs) != 1 || runs[0].Principal != "ann" || runs[0].Trigger != "mcp" {
		t.Errorf("%+v, %v", runs, err)
	}
	_, err = callExposed(ctx, g, "double", `{"numbers":"x"}`)
	wantKind(t, err, tool.Invalid, "numbers")
	_, err = callExposed(ctx, g, "hidden", `{}`)
	wantKind(t, err, tool.NotFound, "hidden")
	result, err = callExposed(ctx, g, "fails", `{}`)
	if err != nil || !result.IsError || !strings.HasPrefix(result.Text(), "workflow fails failed (run r-") || !strings.Contains(result.Text(), "at step x: there is no upstream nobody") {
		t.Errorf("%s, %v", result.Text(), err)
	}
	result, err = callExposed(ctx, g, "itself", `{}`)
	if err != nil || !result.IsError || !strings.Contains(result.Text(), "8 workflows have started each other") {
		t.Errorf("%s, %v", result.Text(), err)
	}
	result, err = callExposed(ctx, g, "alone", `{}`)
	if err != nil || !result.IsError || !strings.Contains(result.Text(), "may have 1 runs at once") {
		t.Errorf("%s, %v", result.Text(), err)
	}
	var work sync.WaitGroup
	for range 4 { // twice as many as may go on at once, and all wait for others
		work.Go(func() {
			if r := run(t, e, workflow.Start{Workflow: "many"}); r.Status != workflow.OK {
				t.Errorf("%+v: %+v", r, r.Error)
			}
		})
	}
	work.Wait()
	_, err = callExposed(tool.WithPrincipal(ctx, "eve"), g, "slow", `{}`)
	wantKind(t, err, tool.Denied, `rule "no slow ones"`)
	t.Run("people", func(t *testing.T) { ownWaits(t, g, e) })
	t.Run("gone", func(t *testing.T) { ownGone(t, g, e) })
}

func wantKind(t *testing.T, err error, kind tool.Kind, says string) {
	t.Helper()
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != kind || !strings.Contains(e.Error(), says) {
		t.Errorf("%v, want %s with %q", err, kind, says)
	}
}

// ownWaits: a run that nobody answers in time goes on without its caller, and one that is answered comes to its outputs.
func ownWaits(t *testing.T, g *gateway.Gateway, e *workflow.Engine) {
	t.Helper()
	ctx := tool.WithPrincipal(t.Context(), "ben")
	_, err := callExposed(ctx, g, "sure", `{}`)
	wantKind(t, err, tool.Denied, "sallyport approvals approve a-")
	all, err := g.Approver.Approvals(ctx)
	if err != nil || len(all) != 1 || all[0].Tool != "workflows.sure" {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := g.Approver.Answer(tool.WithOperator(ctx, "cli"), all[0].ID, approvals.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	run, err := e.Wait(ctx, all[0].Execution)
	if err != nil || run.Status != workflow.OK || string(run.Outputs) != `{"by":"cli"}` {
		t.Errorf("%+v, %v", run, err)
	}
	p := &personPeer{}
	result, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: toolcall.WorkflowsID, Name: "sure"}, Args: json.RawMessage(`{}`), Peer: p})
	if err != nil || string(result.Structured) != `{"by":"the user"}` || !strings.Contains(p.asked, "Sallyport: workflows.sure asks:\\nReally?") {
		t.Errorf("%s, %v, asked %s", result.Structured, err, p.asked)
	}
}

// personPeer says yes.
type personPeer struct{ asked string }

func (*personPeer) Notify(string, json.RawMessage) {}

func (p *personPeer) Ask(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
	p.asked = string(params)
	return json.RawMessage(`{"action":"accept","content":{"decision":"once"}}`), nil
}

// ownGone: the run of a caller who goes away is canceled.
func ownGone(t *testing.T, g *gateway.Gateway, e *workflow.Engine) {
	t.Helper()
	ctx, leave := context.WithCancel(tool.WithPrincipal(t.Context(), "cyd"))
	ended := make(chan error, 1)
	go func() { _, err := callExposed(ctx, g, "slow", `{}`); ended <- err }()
	testutil.Eventually(t, "it waits", 5*time.Second, func() bool {
		runs, _ := e.Runs(tool.WithPrincipal(t.Context(), "cyd"), workflow.Filter{Status: workflow.Waiting})
		return len(runs) == 1
	})
	leave()
	wantKind(t, <-ended, tool.Canceled, "")
	testutil.Eventually(t, "it is canceled", 5*time.Second, func() bool {
		runs, _ := e.Runs(tool.WithPrincipal(t.Context(), "cyd"), workflow.Filter{Status: workflow.Canceled})
		return len(runs) == 1
	})
}

// TestOwnFromPrograms: programs in either language call workflows as they call tools, and wait for people with their clock stopped.
func TestOwnFromPrograms(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", testutil.ShortDir(t))
	g, e := openAttached(t, func(cfg *config.Config) {
		cfg.Sandbox.Runsc, cfg.Sandbox.Typecheck, cfg.Approval.Wait = testutil.Runsc(t), false, 20*time.Second
	})
	for language, code := range map[string]string{
		"python":     "from servers import workflows\nfrom sallyport import ToolError\nsaid = workflows.double(numbers=[1, 2])['doubled']\ntry: workflows.fails()\nexcept ToolError as e: said.append(e.kind)\nsaid",
		"typescript": "import { double, fails } from 'servers/workflows';\nconst said: unknown[] = [...(await double({ numbers: [1, 2] })).doubled];\ntry { await fails() } catch (e) { said.push((e as any).kind) }\nsaid",
	} {
		out, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Language: language})
		if err != nil || out.Status != sandbox.OK || out.Value == nil || out.Value.Text != `[2,4,"failed"]` {
			t.Errorf("%s: %v\n%s", language, err, out.Text())
		}
		if runs, err := e.Runs(t.Context(), workflow.Filter{Workflow: "double"}); err != nil || runs[0].Parent != out.ID || runs[0].Trigger != "program" {
			t.Errorf("%+v, %v", runs, err)
		}
	}
	p := &slowPeer{}
	out, err := g.Executor.Execute(t.Context(), execution.Program{Code: "from servers import workflows\nworkflows.sure()['by']", Timeout: time.Second, Peer: p})
	if err != nil || out.Status != sandbox.OK || out.Value.Text != `"the user"` || !strings.HasPrefix(p.message(), "Sallyport: workflows.sure asks:") {
		t.Errorf("%v, asked %q\n%s", err, p.message(), out.Text())
	}
}

// TestOwnRunPrograms: programs that wait for workflows do not keep the programs of these workflows from running.
func TestOwnRunPrograms(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", testutil.ShortDir(t))
	g, _ := openAttached(t, func(cfg *config.Config) {
		cfg.Sandbox.Runsc, cfg.Sandbox.Typecheck, cfg.Sandbox.Parallel = testutil.Runsc(t), false, 1
	})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			out, err := g.Executor.Execute(t.Context(), execution.Program{Timeout: 25 * time.Second, Code: `
from concurrent.futures import ThreadPoolExecutor
from servers import workflows
list(ThreadPoolExecutor(2).map(lambda n: workflows.coded(n=n)["sum"], [1, 2]))`})
			if err != nil || out.Status != sandbox.OK || out.Value == nil || out.Value.Text != "[2,3]" {
				t.Errorf("%v\n%s", err, out.Text())
			}
		})
	}
	all.Wait()
	if running, waiting := g.Executor.Load(); running != 0 || waiting != 0 {
		t.Errorf("%d run and %d wait at the end", running, waiting)
	}
}

// slowPeer takes longer than the program has.
type slowPeer struct{ personPeer }

func (p *slowPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	time.Sleep(1500 * time.Millisecond)
	return p.personPeer.Ask(ctx, method, params)
}

func (p *slowPeer) message() string {
	var form struct{ Message string }
	_ = json.Unmarshal([]byte(p.asked), &form) // nothing, where nobody was asked
	return form.Message
}

// TestRunsStayAtEndpoint: a run that a caller at an endpoint starts calls the tools of the endpoint only, and so does one that
// repeats it for a caller who is not confined.
func TestRunsStayAtEndpoint(t *testing.T) {
	t.Parallel()
	g, e := openAttached(t, func(cfg *config.Config) {
		cfg.Endpoints = map[string]config.Endpoint{"part": {Tools: []string{"workflows.five"}}, "whole": {Tools: []string{"workflows.*"}}}
	})
	ctx := tool.WithPrincipal(t.Context(), "ann")
	for endpoint, want := range map[string]workflow.Status{"part": workflow.Failed, "whole": workflow.OK, "gone": workflow.Failed} {
		started, err := e.Start(tool.WithEndpoint(ctx, endpoint), workflow.Start{Workflow: "many"})
		if err != nil {
			t.Fatal(err)
		}
		done, err := e.WaitSettled(ctx, started.ID)
		if err != nil || done.Status != want || want == workflow.Failed && !strings.Contains(done.Error.Message, "there is no ") {
			t.Errorf("%s: %+v %+v, %v", endpoint, done.Status, done.Error, err)
		}
		again, err := e.Replay(ctx, started.ID, "each")
		if err != nil {
			t.Fatal(err)
		}
		if done, err = e.WaitSettled(ctx, again.ID); err != nil || done.Status != want {
			t.Errorf("%s, repeated: %+v, %v", endpoint, done, err)
		}
	}
	if _, err := g.Call(tool.WithEndpoint(ctx, "part"), tool.Call{Tool: tool.ID{Upstream: toolcall.WorkflowsID, Name: "double"}, Args: json.RawMessage(`{"numbers":[1]}`)}); err == nil || !strings.Contains(err.Error(), "there is no tool workflows.double") {
		t.Errorf("a workflow that the endpoint has not: %v", err)
	}
}
