package gateway_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/config"
	"sallyport/internal/journal"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// TestRealTask: programs in both languages call a tool that requires a task, of a real server.
func TestRealTask(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	script := filepath.Join(testutil.Upstreams(t), "@modelcontextprotocol", "server-everything", "dist", "index.js")
	cfg.Upstreams = []config.Upstream{{Name: "everything", ID: "everything", Command: "node", Args: []string{script, "stdio"}, Dir: t.TempDir(), Timeout: time.Minute}}
	cfg.Sandbox.Timeout = 2 * time.Minute
	g := open(t, withRunsc(t, &cfg), &gateway.Options{DataDir: t.TempDir(), NoPool: true, PeerRequests: true, ConnectWait: time.Minute})
	g.Catalog.WaitConnected(t.Context())
	var both sync.WaitGroup
	for language, code := range map[string]string{
		"python":     "from sallyport import progress\nfrom servers import everything\nseen = []\nwith progress(lambda p: seen.append(p.message)):\n    answer = everything.simulate_research_query(topic='python', ambiguous=True)\nprint(answer, seen)",
		"typescript": "import * as everything from './servers/everything'\nimport { progress } from 'sallyport'\nconst seen: unknown[] = []\nconst answer = await progress((p) => seen.push(p.message), () => everything.simulate_research_query({topic: 'python', ambiguous: true}))\nconsole.log(answer, seen)",
	} {
		both.Go(func() {
			e, err := g.Executor.Execute(tool.WithPrincipal(t.Context(), language), execution.Program{Language: language, Code: code})
			if err != nil {
				t.Error(err)
				return
			}
			for _, want := range []string{"# Research Report: python", "elicitation unavailable"} {
				if e.Status != sandbox.OK || !strings.Contains(e.Text(), want) {
					t.Errorf("%s: no %q in %s: %s", language, want, e.Status, e.Text())
				}
			}
			// A status that lasts for less time than it takes to poll is not seen; one of them is.
			statuses := []string{"Gathering sources...", "Requesting clarification...", "Analyzing content...", "Synthesizing findings...", "Generating report..."}
			if !slices.ContainsFunc(statuses, func(status string) bool { return strings.Contains(e.Text(), status) }) {
				t.Errorf("%s: no status of the task in %s", language, e.Text())
			}
		})
	}
	both.Wait()
}

// TestTaskOutlivesTheGateway: the gateway was killed while the task of a call ran. The resumed program waits for that task; a
// person is asked only if the upstream has lost it.
func TestTaskOutlivesTheGateway(t *testing.T) {
	t.Parallel()
	server := &upstreamtest.Tasks{}
	web := tlstest.NewServer(t, server)
	t.Cleanup(web.Close)
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{upstreamOf("lab", web.URL)}
	cfg.Approval.Wait = time.Millisecond
	programs := map[string]gateway.GoProgram{}
	for _, as := range []string{"good", "gone"} {
		programs["e-"+as] = func(ctx context.Context, call func(context.Context, string, string) (tool.Result, error)) error {
			result, err := call(ctx, "lab.work", fmt.Sprintf(`{"as":%q}`, as))
			if err == nil && result.Text() != "done" {
				err = fmt.Errorf("result %s", result.Text())
			}
			return err
		}
	}
	dir := t.TempDir()
	g := open(t, &cfg, (&gateway.Options{DataDir: dir, Records: store.Memory(), NoPool: true}).InProcess(programs))
	g.Catalog.WaitConnected(t.Context())
	for as := range map[string]bool{"good": true, "gone": true} {
		leaveTask(t, g, "e-"+as, tool.Call{Tool: tool.ID{Upstream: "lab", Name: "work"}, Args: []byte(fmt.Sprintf(`{"as":%q}`, as))}, "t-"+as)
	}
	ctx := tool.WithPrincipal(t.Context(), "ada")
	if _, err := g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "lab", Name: "work"}, Args: []byte(`{"as":"good"}`)}); err != nil { // the task of before
		t.Fatal(err)
	}
	e, err := g.Executor.Execute(ctx, execution.Program{Resume: "e-good"})
	if err != nil || e.Status != sandbox.OK || server.Calls() != 1 {
		t.Errorf("%s, %v, %d calls", e.Text(), err, server.Calls())
	}
	e, err = g.Executor.Execute(ctx, execution.Program{Resume: "e-gone"})
	if err != nil || e.Status == sandbox.OK || !strings.Contains(e.Text(), "lost the task") {
		t.Errorf("%s, %v", e.Text(), err)
	}
	e, err = g.Executor.Execute(ctx, execution.Program{Resume: e.ID})
	if err != nil || e.Status != execution.Held || server.Calls() != 1 {
		t.Errorf("%s, %v, %d calls", e.Text(), err, server.Calls())
	}
}

// leaveTask leaves the journal of a program that was killed while it waited for a task.
func leaveTask(t *testing.T, g *gateway.Gateway, id string, c tool.Call, task string) {
	t.Helper()
	header := journal.Header{ID: id, Root: id, Principal: "ada", Started: time.Now(), Program: []byte(fmt.Sprintf(`{"code":%q,"language":"python"}`, id))}
	w, err := journal.Create(g.History.Folder("ada"), header, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	made := g.Replay.Attempt(c)
	n, err := w.Begin(journal.Start{Tool: made.Tool, Definition: made.Definition, Arguments: made.Arguments})
	if err == nil {
		err = w.Task(n, task)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
