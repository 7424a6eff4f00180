package flowgen_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/flowgen"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

const pythonProgram = `from servers import filesystem, memory
todo = filesystem.read_text_file(path='todo.md')['content']
memory.create_entities(entities=[{'name': n, 'entityType': 'person', 'observations': ['is in ' + folder]} for n in ('Ada Lovelace', 'Grace Hopper', 'Mary Somerville')])
for e in memory.read_graph()['entities']:
    memory.search_nodes(query=e['name'])
filesystem.write_file(path='copy.md', content='Copied: ' + todo)
filesystem.get_file_info(path='copy.md')`

const typescriptProgram = `import { read_graph, create_relations, open_nodes } from 'servers/memory';
import { write_file } from 'servers/filesystem';
const graph: any = await read_graph();
const names: string[] = graph.entities.map((e: any) => e.name);
await create_relations({ relations: [{ from: names[0], to: names[1], relationType: 'knows' }] });
const nodes: any = await open_nodes({ names });
await write_file({ path: 'relations.txt', content: nodes.relations.map((r: any) => r.relationType).join() });
names.length`

// caller notes the calls that go through it.
type caller struct {
	workflow.Caller
	mu    sync.Mutex
	calls []string
}

func (c *caller) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	c.mu.Lock()
	c.calls = append(c.calls, formatCall(call.Tool, call.Args))
	c.mu.Unlock()
	return c.Caller.Call(ctx, call)
}

// formatCall is a call whose members are in order.
func formatCall(id tool.ID, args json.RawMessage) string {
	var v any
	_ = json.Unmarshal(args, &v) // nothing, of what is no JSON
	text, _ := json.Marshal(v)
	return id.String() + " " + string(text)
}

// TestReal: the draft of what a real program did with the demo's upstreams lints clean, and its run makes the same calls.
func TestReal(t *testing.T) { //nolint:paralleltest // it sets a variable of the environment
	t.Setenv("XDG_RUNTIME_DIR", testutil.ShortDir(t))
	folder, graph, modules := t.TempDir(), filepath.Join(t.TempDir(), "memory.jsonl"), testutil.Upstreams(t)
	cfg := config.Default()
	cfg.Sandbox.Runsc, cfg.Sandbox.Typecheck = testutil.Runsc(t), false
	for name, arg := range map[string]string{"filesystem": folder, "memory": ""} {
		cfg.Upstreams = append(cfg.Upstreams, config.Upstream{Name: name, ID: name, Command: testutil.Program(t, "node"), Dir: folder, Timeout: 20 * time.Second,
			Args: append([]string{filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")}, strings.Fields(arg)...), Env: config.Secrets{"MEMORY_FILE_PATH": graph}})
	}
	g, err := gateway.Open(&cfg, &gateway.Options{DataDir: t.TempDir(), NoPool: true, Snapshots: testutil.Snapshots(), Logger: testutil.Logger(t), ConnectWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	if err := os.WriteFile(filepath.Join(folder, "todo.md"), []byte("- call Ada about the garden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := ""
	for _, p := range []execution.Program{
		{Code: pythonProgram, Variables: map[string]json.RawMessage{"folder": json.RawMessage(`"the registry"`)}},
		{Code: typescriptProgram, Language: "typescript"},
	} {
		before = sameCalls(t, g, p, graph, before)
	}
}

// sameCalls runs a program, and the draft of it from the same state of memory, which it returns as the program left it.
func sameCalls(t *testing.T, g *gateway.Gateway, p execution.Program, graph, before string) string {
	t.Helper()
	e, err := g.Executor.Execute(t.Context(), p)
	if err != nil || e.Status != sandbox.OK {
		t.Fatalf("%v\n%s", err, e.Text())
	}
	after, err := os.ReadFile(graph)
	if err != nil {
		t.Fatal(err)
	}
	done, err := g.History.Succeeded(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	text, err := flowgen.From(done, g.Catalog.Tools())
	if err != nil {
		t.Fatal(err)
	}
	d, err := spec.Parse("draft.yaml", text, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, f := range lint.Check(d, lint.Options{Tools: g.Catalog.Tools(), Upstreams: []string{"filesystem", "memory"}}) {
		if f.Severity == "error" {
			t.Errorf("%v\n%s", f, text)
		}
	}
	if err := os.WriteFile(graph, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range done.Did {
		want = append(want, formatCall(c.Tool, c.Arguments))
	}
	if diff := cmp.Diff(want, callsOf(t, g, d)); diff != "" {
		t.Errorf("%s calls (-program +workflow):\n%s\n%s", done.Language, diff, text)
	}
	if p.Language == "" && (!strings.Contains(string(text), "for_each: ") || !strings.Contains(string(text), ".name }}") || !strings.Contains(string(text), "Copied: ${{ steps.read_text_file.output.content }}")) {
		t.Errorf("%s", text)
	}
	return string(after)
}

// callsOf runs a workflow, and returns the calls that it makes.
func callsOf(t *testing.T, g *gateway.Gateway, d *spec.Definition) []string {
	t.Helper()
	c := &caller{Caller: g.Service()}
	records := store.Memory()
	defer func() { _ = records.Close() }()
	engine, err := workflow.Open(c, &workflow.Options{Records: records, Definitions: func() []*spec.Definition { return []*spec.Definition{d} }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	run, err := engine.Start(t.Context(), workflow.Start{Workflow: d.Name})
	if err != nil {
		t.Fatal(err)
	}
	if run, err = engine.Wait(t.Context(), run.ID); err != nil || run.Status != workflow.OK {
		t.Fatalf("%+v, %v: %+v", run, err, run.Error)
	}
	return c.calls
}
