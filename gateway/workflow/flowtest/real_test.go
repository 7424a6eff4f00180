package flowtest_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/approvals"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/flowtest"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// testEnv is a gateway before the real demo upstreams, and an engine on it.
type testEnv struct {
	*gateway.Gateway
	engine      *workflow.Engine
	definitions []*spec.Definition
	folder      string // of the filesystem server
	t           *testing.T
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	o := &testEnv{folder: t.TempDir(), t: t}
	o.definitions, _ = loadShipped(t)
	modules := testutil.Upstreams(t)
	server := func(name string, args ...string) config.Upstream {
		script := filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
		return config.Upstream{Name: name, ID: name, Command: testutil.Program(t, "node"), Args: append([]string{script}, args...), Dir: o.folder, Timeout: 20 * time.Second}
	}
	cfg := config.Default()
	memory := server("memory")
	memory.Env = config.Secrets{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	cfg.Upstreams = []config.Upstream{server("everything", "stdio"), server("filesystem", o.folder), memory}
	cfg.Sandbox.Runsc, cfg.Sandbox.Typecheck = testutil.Runsc(t), false
	records := store.Memory()
	t.Cleanup(func() { _ = records.Close() })
	var err error
	if o.Gateway, err = gateway.Open(&cfg, &gateway.Options{Logger: testutil.Logger(t), Snapshots: testutil.Snapshots(), DataDir: t.TempDir(), Records: records, ConnectWait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	o.engine, err = workflow.Open(o.Service(), &workflow.Options{Records: records, Definitions: func() []*spec.Definition { return o.definitions }, Approvals: o.Approver, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.engine.Close() })
	o.Catalog.WaitConnected(t.Context())
	return o
}

// write puts files into the folder.
func (o *testEnv) write(files map[string]string) {
	o.t.Helper()
	for name, text := range files {
		path := filepath.Join(o.folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			o.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
}

// read returns a file of the folder, "" for none.
func (o *testEnv) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(o.folder, name))
	return string(text)
}

// observations are the observations of an entity in memory, a line each.
func (o *testEnv) observations(name string) string {
	o.t.Helper()
	args, err := json.Marshal(map[string]any{"names": []string{name}})
	if err != nil {
		o.t.Fatal(err)
	}
	result, err := o.Call(o.t.Context(), tool.Call{Tool: tool.ID{Upstream: "memory", Name: "open_nodes"}, Args: args})
	if err != nil {
		o.t.Fatal(err)
	}
	var graph struct {
		Entities []struct{ Observations []string }
	}
	if err := json.Unmarshal(result.Structured, &graph); err != nil || len(graph.Entities) != 1 {
		o.t.Fatalf("memory has %s of %s: %v", result.Structured, name, err)
	}
	return strings.Join(graph.Entities[0].Observations, "\n")
}

// run runs a workflow to its end; people give the answers to forms, and allow what they are asked.
func (o *testEnv) run(name, inputs string, answers map[string]string) workflow.Run {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 90*time.Second)
	defer cancel()
	answered := map[string]bool{}
	run, err := o.engine.Start(ctx, workflow.Start{Workflow: name, Inputs: json.RawMessage(inputs), Trigger: "test"})
	for err == nil && !run.Status.Over() {
		if run, err = o.engine.WaitSettled(ctx, run.ID); err != nil || run.Status.Over() {
			break
		}
		for _, p := range run.Waiting {
			if answered[p.Step] { // it has not gone on yet
				time.Sleep(time.Millisecond)
				continue
			}
			answered[p.Step] = true
			if p.For == "form" {
				_, err = o.engine.Answer(ctx, run.ID, p.Step, json.RawMessage(answers[p.Step]))
			} else {
				_, err = o.Approver.Answer(tool.WithOperator(ctx, "tester"), p.Approval, approvals.Answer{Allow: true, Scope: approval.Once})
			}
		}
	}
	if err != nil {
		o.t.Fatalf("%s: %v", name, err)
	}
	if run.Status != workflow.OK {
		o.t.Fatalf("%s: %s: %+v", name, run.Status, run.Error)
	}
	return run
}

// rehearse records a run and has the test that is made of it pass, without a gateway.
func (o *testEnv) rehearse(run workflow.Run) {
	o.t.Helper()
	data, err := flowtest.Record(o.engine.Events(o.t.Context(), run.ID, 0))
	if err != nil {
		o.t.Fatal(err)
	}
	file, err := flowtest.Parse(run.Workflow+"_test.yaml", data)
	if err != nil {
		o.t.Fatalf("%v\n%s", err, data)
	}
	for _, r := range flowtest.Run(o.t.Context(), []*flowtest.File{file}, flowtest.Options{Definitions: o.definitions}) {
		if !r.OK() {
			o.t.Errorf("what was recorded does not pass: %+v\n%s", r.Failures, data)
		}
	}
}

// TestShippedDefinitionsRun runs each shipped definition once on the real upstreams, looks at what it did, and records it.
func TestShippedDefinitionsRun(t *testing.T) {
	o := newTestEnv(t)
	o.checkLint(t)
	o.write(map[string]string{
		"notes/tea.md": "# Tea\nGreen or black.\n", "notes/plan.md": "# Plan\nWalk.\n", "notes/skip.txt": "no",
		"inbox/a.PNG": "x", "inbox/b.md": "y", "old.txt": "one\ntwo\n", "new.txt": "one\n2\n",
	})
	ran := map[string]bool{}
	for _, test := range []struct {
		name, inputs string
		answers      map[string]string
		check        func(run workflow.Run)
	}{
		{"folder_digest", `{"folder": "notes"}`, nil, func(run workflow.Run) {
			o.want(string(run.Outputs), `"files":2`)
			o.want(o.observations("notes/tea.md"), "digest: 5 words in 2 lines\ndigest: headings are Tea\ndigest: begins with Green or black.")
			o.write(map[string]string{"notes/tea.md": "# Tea\nWhite.\n"})
			o.run("folder_digest", `{"folder": "notes"}`, nil)
			o.want(o.observations("notes/tea.md"), "digest: headings are Tea\ndigest: 3 words in 2 lines\ndigest: begins with White.")
		}},
		{"sqlite_report", `{"sample": true}`, nil, func(workflow.Run) {
			o.want(o.read("report.md"), "| south | 2 | 100.5 |")
		}},
		{"compare_files", `{"left": "old.txt", "right": "new.txt"}`, nil, func(workflow.Run) {
			o.want(o.read("changes.diff"), "-two\n+2\n")
		}},
		{"file_entry", `{"kind": "task"}`, map[string]string{"ask": `{"title": "Water the trees", "due": "2026-06-01", "text": "soon", "about": "notes/tea.md"}`}, func(workflow.Run) {
			o.want(o.observations("Water the trees"), "due: 2026-06-01\ntext: soon")
		}},
		{"weekly_review", `{"sample": true}`, nil, func(run workflow.Run) {
			o.want(o.read("reviews/"+run.Started.UTC().Format(time.DateOnly)+".md"), "- notes/tea.md: ", "\n## Sales by region\n")
			o.want(o.read("reviews/figures.md"), "# Sales by region")
		}},
		{"nightly_check", `{}`, nil, func(run workflow.Run) {
			o.want(string(run.Outputs), `"healthy":true`)
		}},
		{"sort_inbox", `{}`, nil, func(workflow.Run) {
			o.want(o.read("sorted/pictures/a.PNG")+o.read("sorted/texts/b.md"), "xy")
		}},
		{"note_push", `{"repository": "octo/hello", "ref": "refs/heads/main", "head": "abc", "commits": [{"id": "0123456789", "message": "Mend\n\nall"}]}`, nil, func(workflow.Run) {
			o.want(o.observations("octo/hello"), "main 0123456: Mend")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o.t, ran[test.name] = t, true
			run := o.run(test.name, test.inputs, test.answers)
			test.check(run)
			o.rehearse(run)
		})
	}
	for _, d := range o.definitions {
		if !ran[d.Name] {
			t.Errorf("%s is not run; only %v", d.Name, slices.Sorted(maps.Keys(ran)))
		}
	}
}

// want checks that a text has all parts.
func (o *testEnv) want(text string, parts ...string) {
	o.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			o.t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// checkLint has the linter look at all definitions, with what the real upstreams say of their tools.
func (o *testEnv) checkLint(t *testing.T) {
	t.Helper()
	options := lint.Options{Tools: o.Catalog.Tools(), Upstreams: []string{"everything", "filesystem", "memory"}, Workflows: map[string]*spec.Definition{}, Secrets: []string{"github"}}
	for _, d := range o.definitions {
		options.Workflows[d.Name] = d
	}
	for _, d := range o.definitions {
		for _, finding := range lint.Check(d, options) {
			t.Error(finding)
		}
	}
}
