package rules_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway/task/rules"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// servers are those of the catalogue whose tools are candidates, all of them for each task.
var servers = []string{"filesystem", "memory", "github", "slack", "git", "gmail", "sqlite", "everything", "brave-search", "playwright", "dbhub", "elasticsearch"}

type listed struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	Annotations               tool.Annotations
}

func candidates(t *testing.T) (all []rules.Candidate) {
	t.Helper()
	add := func(upstream string, tools []listed) {
		for _, one := range tools {
			all = append(all, rules.Candidate{Rank: 10, Tool: tool.Tool{
				ID: tool.ID{Upstream: tool.Identifier(upstream), Name: tool.Identifier(one.Name)}, Wire: one.Name, Description: one.Description,
				Input: one.InputSchema, Output: one.OutputSchema, Annotations: one.Annotations,
			}})
		}
	}
	var demo map[string][]listed
	decode(t, filepath.Join("testdata", "demo.json"), &demo)
	for _, name := range []string{"shop", "notes", "desk"} {
		add(name, demo[name])
	}
	for _, name := range servers {
		path := filepath.Join(testutil.ModuleRoot(t), "..", "shared", "catalog", name+".json")
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join(testutil.ModuleRoot(t), "..", "..", "shared", "catalog", name+".json")
		}
		if _, err := os.Stat(path); err != nil {
			t.Skipf("the catalogue is not here: %v", err)
		}
		var list struct{ Tools []listed }
		decode(t, path, &list)
		add(name, list.Tools)
	}
	return all
}

func decode(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(path, err)
	}
}

// TestTasks measures the rules on tasks, with the tools of the demo servers and of the catalogue as candidates: at most 5 %
// of the plans that would run are not what the task wants. The rules were made with tasks.txt in view, not with held.txt.
func TestTasks(t *testing.T) {
	all := candidates(t)
	data, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs", "how-to", "run-tasks.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	if want := fmt.Sprintf("with %d tools", len(all)); !strings.Contains(page, want) {
		t.Errorf("docs/how-to/run-tasks.md does not say %q", want)
	}
	for _, set := range []struct {
		name         string
		tasks, right int
	}{{"tasks.txt", 60, 55}, {"held.txt", 20, 12}} {
		t.Run(set.name, func(t *testing.T) {
			count := measure(t, set.name, all)
			t.Logf("%d tasks: %v", set.tasks, count)
			n := 0
			for _, of := range count {
				n += of
			}
			row := fmt.Sprintf("| %d | %d | %d | %d |", count["right"], count["asked"], count["refused"], count["wrong"])
			if !strings.Contains(page, fmt.Sprintf("\n| %d ", set.tasks)) || !strings.Contains(page, row) {
				t.Errorf("docs/how-to/run-tasks.md has no row of %d tasks that ends with %q", set.tasks, row)
			}
			if n != set.tasks || count["wrong"]*20 > n || count["right"] < set.right {
				t.Errorf("%d tasks: %v", n, count)
			}
		})
	}
}

// measure counts the verdicts on a file of tasks.
func measure(t *testing.T, file string, all []rules.Candidate) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		text, want, ok := strings.Cut(line, " | ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		plan := rules.Make(rules.Request{Task: text, Tools: all})
		if again := rules.Make(rules.Request{Task: text, Tools: all}); again.Program != plan.Program || again.Refusal != plan.Refusal {
			t.Errorf("%s: two plans:\n%s\n%s", text, plan.Program, again.Program)
		}
		verdict := judge(plan, want)
		count[verdict]++
		if verdict != "right" {
			t.Logf("%s: %s, wanted %s\n%v %s\n%s", verdict, text, want, plan.Missing, plan.Refusal, plan.Program)
		}
	}
	return count
}

// judge compares a plan with what is right. To ask or to refuse where no call is right is right.
func judge(plan rules.Plan, want string) string {
	runs := plan.Refusal == "" && len(plan.Missing) == 0
	switch {
	case !runs && want == "-":
		return "right"
	case plan.Refusal != "":
		return "refused"
	case len(plan.Missing) > 0:
		return "asked"
	case want == "-":
		return "wrong"
	}
	var calls []string
	for _, id := range plan.Calls[:len(plan.Calls)-1] {
		calls = append(calls, id.Name)
	}
	lines := strings.Split(strings.TrimSpace(plan.Program), "\n")
	got := strings.Join(append(calls, lines[len(lines)-1]), " < ")
	if sorted(got) == sorted(want) {
		return "right"
	}
	return "wrong"
}

// sorted puts the arguments of the last call in order.
func sorted(call string) string {
	name, args, _ := strings.Cut(strings.TrimSuffix(call, ")"), "(")
	list := strings.Split(args, ", ")
	slices.Sort(list)
	return name + "(" + strings.Join(list, ", ")
}

// FuzzMake: no task and no schema do more than fail to match, and what is planned twice is the same.
func FuzzMake(f *testing.F) {
	f.Add("Get the user 7 of \"x\" from a/b", `{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"a-b":{"type":["string","null"]}}}`)
	f.Add("list things 2026-01-02 /a/b.txt", `{"properties":{"path":{"anyOf":[{"type":"null"},{"type":"string"}]},"x":{"enum":[1,null,"list"]}}}`)
	f.Fuzz(func(t *testing.T, task, schema string) {
		one := tool.Tool{ID: tool.ID{Upstream: "up", Name: "get_user"}, Input: json.RawMessage(schema), Output: json.RawMessage(schema)}
		two := tool.Tool{ID: tool.ID{Upstream: "up", Name: "list_things"}, Input: json.RawMessage(schema), Output: json.RawMessage(schema)}
		r := rules.Request{Task: task, Tools: []rules.Candidate{{Tool: one}, {Tool: two}}}
		if a, b := rules.Make(r), rules.Make(r); a.Program != b.Program || a.Refusal != b.Refusal {
			t.Errorf("two plans:\n%+v\n%+v", a, b)
		}
	})
}
