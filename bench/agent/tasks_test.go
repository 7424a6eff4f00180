package agent_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/agent"
	"sallyport/bench/benchtest"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/internal/testutil"
)

// world makes a world in a folder of its own.
func world(t *testing.T) *suite.World {
	t.Helper()
	w, err := suite.NewWorld(filepath.Join(testutil.ShortDir(t), "world"), testutil.Upstreams(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Reset(); err != nil {
		t.Fatal(err)
	}
	return w
}

func open(t *testing.T, mode suite.Mode, setup agent.Setup) agent.Open {
	t.Helper()
	for _, s := range setup.World.Servers() {
		setup.Upstreams = append(setup.Upstreams, s.Name)
	}
	tools, err := agent.OpenTools(t.Context(), mode, setup)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tools.Close(); err != nil {
			t.Errorf("close %s: %v", mode, err)
		}
	})
	return tools
}

// play has the script of a task work on it.
func play(ctx context.Context, task *suite.Task, w *suite.World, mode suite.Mode, tools agent.Tools) (*tokencount.Transcript, error) {
	script := agent.NewScript(task, w, mode)
	defer script.Close()
	t := &tokencount.Transcript{Task: task.Name, Mode: string(mode), Prompt: w.Expand(task.Prompt)}
	_, err := agent.Run(ctx, script, tools, t, agent.Limits{})
	return t, err
}

// Every task comes to its answer in every mode, in whatever order they are played, and what
// is read and written is the same the second time.
func TestTasks(t *testing.T) {
	for i, mode := range suite.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := world(t)
			setup := agent.Setup{World: w, More: []agent.Catalogue{crm()}}
			if mode == suite.Code {
				setup.Sallyport = benchtest.Sallyport(t, t.TempDir())
			}
			tools := open(t, mode, setup)
			enough(t, mode, tools)
			onlyShown(t, mode, tools)
			tasks := suite.Tasks()
			rand.New(rand.NewPCG(uint64(i), 1)).Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
			for n, task := range tasks {
				first := playWell(t, task, w, mode, tools)
				if task.Done == nil && n%9 == 0 {
					if diff := cmp.Diff(lines(t, first), lines(t, playWell(t, task, w, mode, tools))); diff != "" {
						t.Errorf("%s is not the same again:\n%s", task.Name, diff)
					}
				}
			}
		})
	}
}

func playWell(t *testing.T, task *suite.Task, w *suite.World, mode suite.Mode, tools agent.Tools) *tokencount.Transcript {
	t.Helper()
	played, err := play(t.Context(), task, w, mode, tools)
	if err == nil {
		err = agent.Check(task, w, played)
	}
	if err != nil {
		t.Errorf("%s in mode %s: %v", task.Name, mode, err)
	}
	return played
}

// lines is a transcript to be compared.
func lines(t *testing.T, played *tokencount.Transcript) []string {
	t.Helper()
	text, err := json.MarshalIndent(played.Turns, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// crm is a catalogue with a tool that nothing can be done with.
func crm() agent.Catalogue {
	return agent.Catalogue{Name: "crm", Description: "customers of a company", Tools: []json.RawMessage{
		json.RawMessage(`{"name":"merge_customers","description":"Merge two customers <at once>","inputSchema":{"type": "object","properties":{"z":{"type":"string"},"a":{"type":"string"}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
	}}
}

// onlyShown says what a mode makes of a tool that is only in a catalogue.
func onlyShown(t *testing.T, mode suite.Mode, tools agent.Tools) {
	t.Helper()
	const name = "crm__merge_customers"
	question := map[suite.Mode]tokencount.Call{
		suite.Direct: {Tool: name, Args: json.RawMessage(`{"a":"1"}`)},
		suite.Search: {Tool: suite.SearchTool, Args: json.RawMessage(`{"query":"merge customers"}`)},
		suite.Code:   {Tool: suite.ExecuteCode, Args: json.RawMessage(`{"code":"from servers.crm import merge_customers\nmerge_customers(a='1')"}`)},
	}[mode]
	r, err := tools.Call(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	// It arrives as it was written, but for white space; what it says of its output stays out.
	want := tokencount.Definition{
		Name: name, Description: "Merge two customers <at once>",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`),
	}
	shows := map[suite.Mode][]tokencount.Definition{suite.Direct: tools.Definitions(), suite.Search: r.Shows}[mode]
	if mode != suite.Code && !slices.ContainsFunc(shows, func(def tokencount.Definition) bool { return cmp.Equal(def, want) }) {
		t.Errorf("mode %s shows %d definitions, and not %+v", mode, len(shows), want)
	}
	if mode != suite.Search && (!r.Error || !strings.Contains(r.Text, "The server of this tool is not connected.")) {
		t.Errorf("the call in mode %s came to (error: %v) %q", mode, r.Error, r.Text)
	}
}

// enough is about what a model reads before it begins, so that nothing is counted that no client shows and nothing left out.
func enough(t *testing.T, mode suite.Mode, tools agent.Tools) {
	t.Helper()
	names := map[suite.Mode][]string{suite.Search: {suite.SearchTool}, suite.Code: {suite.ExecuteCode, suite.SearchTools}}[mode]
	if mode == suite.Direct {
		names = []string{"filesystem__read_text_file", "memory__read_graph", "crm__merge_customers"}
	}
	var got []string
	for _, def := range tools.Definitions() {
		got = append(got, def.Name)
	}
	for _, name := range names {
		if !slices.Contains(got, name) {
			t.Errorf("mode %s does not show %s; it shows %q", mode, name, got)
		}
	}
	if mode != suite.Direct && len(got) != len(names) {
		t.Errorf("mode %s shows %q", mode, got)
	}
	if (len(tools.Instructions()) == 0) != (mode == suite.Code) {
		t.Errorf("instructions in mode %s: %q", mode, tools.Instructions())
	}
}
