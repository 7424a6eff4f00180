package suite_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
)

// play plays a task; answers are what its turns get, one after the other. It returns the calls as "tool args" by turn.
func play(t *testing.T, task *suite.Task, mode suite.Mode, answers ...[]tokencount.Result) (turns []string, answer string, err error) {
	t.Helper()
	w, err := suite.NewWorld("/w", "/m")
	if err != nil {
		t.Fatal(err)
	}
	p := task.Play(w, mode)
	defer p.Stop()
	var results []tokencount.Result
	for {
		calls, answer, err := p.Next(results)
		if err != nil || calls == nil {
			return turns, answer, err
		}
		if len(turns) == len(answers) {
			t.Fatalf("no answer is left for %v", calls)
		}
		var line []string
		for _, c := range calls {
			line = append(line, c.Tool+" "+string(c.Args))
		}
		results, turns = answers[len(turns)], append(turns, strings.Join(line, "; "))
	}
}

func text(texts ...string) (results []tokencount.Result) {
	for _, text := range texts {
		results = append(results, tokencount.Result{Text: text})
	}
	return results
}

func failed(text string) []tokencount.Result { return []tokencount.Result{{Text: text, Error: true}} }

// greet makes two calls in a turn, and one that needs their results.
func greet(m *suite.ScriptRun) string {
	texts := m.All(suite.Call("a.one", nil), suite.Call("b.two-x", map[string]int{"n": 2}))
	return m.Call("a.three", texts) + "!"
}

func TestPlayerSeesResults(t *testing.T) {
	turns, answer, err := play(t, &suite.Task{Direct: greet}, suite.Direct, text("x", "y"), text("z"))
	if got, want := strings.Join(turns, "\n"), "a__one null; b__two-x {\"n\":2}\na__three [\"x\",\"y\"]"; got != want || answer != "z!" || err != nil {
		t.Errorf("calls %s\nanswer %q, %v", got, answer, err)
	}
}

func TestPlayerGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		script  suite.Script
		answers [][]tokencount.Result
		want    string
	}{
		"tool failed": {greet, [][]tokencount.Result{{{Text: "x"}, {Text: "no such thing", Error: true}}}, "play: b.two-x: no such thing"},
		"at once":     {func(m *suite.ScriptRun) string { m.Fail("sorry: %w", fmt.Errorf("late")); return "" }, nil, "play: sorry: late"},
		"no JSON":     {func(m *suite.ScriptRun) string { return suite.Decode[string](m, m.Call("a.one", nil)) }, [][]tokencount.Result{text("<>")}, `play: read result: invalid character '<' looking for beginning of value: "<>"`},
	} {
		if _, _, err := play(t, &suite.Task{Direct: c.script}, suite.Direct, c.answers...); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A mistake that a model makes is seen by the script, and it goes on.
func TestPlayerSeesErrors(t *testing.T) {
	script := func(m *suite.ScriptRun) string {
		if r := m.Turn(suite.Call("a.one", nil))[0]; r.Error {
			return m.Call("a.two", r.Text)
		}
		return ""
	}
	turns, answer, err := play(t, &suite.Task{Direct: script}, suite.Direct, failed("wrong"), text("right"))
	if len(turns) != 2 || turns[1] != `a__two "wrong"` || answer != "right" || err != nil {
		t.Errorf("%q, %q, %v", turns, answer, err)
	}
}

func TestPlayerStops(t *testing.T) {
	left := 0
	task := &suite.Task{Direct: func(m *suite.ScriptRun) string {
		defer func() { left++ }()
		return greet(m)
	}}
	for turns := range 3 {
		p := task.Play(&suite.World{}, suite.Direct)
		for range turns {
			if calls, _, err := p.Next(text("x", "y")); len(calls) == 0 || err != nil {
				t.Fatal(calls, err)
			}
		}
		p.Stop()
		p.Stop()
		if left != turns {
			t.Errorf("stopped after %d turns: %d scripts have ended", turns, left)
		}
	}
}

func TestOurMistakesPanic(t *testing.T) {
	task := &suite.Task{Direct: func(*suite.ScriptRun) string { panic("ours") }}
	for name, f := range map[string]func(){
		"script":    func() { _, _, _ = task.Play(&suite.World{}, suite.Direct).Next(nil) },
		"arguments": func() { suite.Call("a.b", func() {}) },
	} {
		caught := func() (caught any) {
			defer func() { caught = recover() }()
			f()
			return nil
		}()
		if caught == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}

func shows(names ...string) (r tokencount.Result) {
	for _, name := range names {
		r.Shows = append(r.Shows, tokencount.Definition{Name: name})
	}
	return r
}

func TestSearchFindsBeforeItCalls(t *testing.T) {
	task := &suite.Task{Needs: []string{"a.one", "a.three", "b.two-x"}, Queries: [][]string{{"other words"}}, SearchQueries: [][]string{{"one", "two"}, {"three"}}, Direct: greet}
	turns, answer, err := play(t, task, suite.Search, []tokencount.Result{shows("a__one", "a__four"), shows("b__two-x")}, []tokencount.Result{shows("a__three")}, text("x", "y"), text("z"))
	if want := `tool_search {"query":"one"}; tool_search {"query":"two"}`; len(turns) != 4 || turns[0] != want || answer != "z!" || err != nil {
		t.Errorf("%q, %q, %v", turns, answer, err)
	}
	task.SearchQueries = nil
	if _, _, err := play(t, task, suite.Search, []tokencount.Result{shows("a__one", "a__three", "a__two-x")}); err == nil || err.Error() != "play: no search found b.two-x" {
		t.Error(err)
	}
}

// Answers of search_tools, as they were.
const (
	pythonAnswer = `Not sure: try other words. Closest:
from servers.filesystem import ...
  read_text_file(path: str, *, tail: float = ..., head: float = ...) -> {content: str}
    Read the complete contents of a file from the file system as text
  write_file(path: str, content: str) -> {content: str} [destructive]
    Create a new file or completely overwrite an existing file with new content
from servers.everything import prompts
  prompts.get("resource-prompt", {"resourceType": str, "resourceId": str}) -> {messages: [...]}
    A prompt that includes an embedded resource reference
filesystem.get_file_info: Retrieve detailed metadata about a file or directory
also filesystem: read_multiple_files, list_directory; git: git_show
(11 more)`
	typescriptAnswer = `import { ... } from "servers/everything"
  get_sum({a: number, b: number}): Promise<any>
    Returns the sum of two numbers
git.git_add: Stage files for commit
import { ... } from "servers/git"
  git_log({path?: string, maxCount?: number}): Promise<{success: boolean, commits: {...}[]}>
    View commit history, or call read_text_file(path)
(22 more)`
	fullPython = `from servers.everything import get_sum
everything.get_sum(a: float, b: float) -> Any

Returns the sum of two numbers

git.git_diff: View differences between commits, branches, or working tree`
	fullTypescript = `import { get_sum } from "servers/everything"
everything.get_sum({a: number, b: number}): Promise<any>

Returns the sum of two numbers`
)

// A program can be written when a search has shown the signature of all that it imports, below its upstream.
func TestCodeNeedsSignatures(t *testing.T) {
	for _, c := range []struct {
		answer, id string
		signed     bool
	}{
		{pythonAnswer, "filesystem.read_text_file", true},
		{pythonAnswer, "filesystem.write_file", true},
		{pythonAnswer, "filesystem.read_text", false},             // the beginning of a name
		{pythonAnswer, "filesystem.get_file_info", false},         // described, not signed
		{pythonAnswer, "filesystem.read_multiple_files", false},   // named
		{pythonAnswer, "git.write_file", false},                   // another upstream's
		{pythonAnswer, "everything.write_file", false},            // another import line's
		{pythonAnswer, "system.read_text_file", false},            // the end of an upstream's name
		{typescriptAnswer, "everything.get_sum", true},            // in the other language
		{typescriptAnswer, "git.git_log", true},                   // below the second import line
		{typescriptAnswer, "everything.git_log", false},           // below another's
		{typescriptAnswer, "git.git_add", false},                  // described
		{typescriptAnswer, "git.read_text_file", false},           // in a description
		{fullPython, "everything.get_sum", true},                  // in full
		{fullTypescript, "everything.get_sum", true},              // in full
		{fullPython, "git.git_diff", false},                       // described
		{"everything.get_sum(a, b)", "everything.get_sum", false}, // no import line
	} {
		task := &suite.Task{Queries: [][]string{{"words"}}, Programs: []suite.Program{{File: "addition.py", Needs: []string{c.id}}}}
		turns, _, err := play(t, task, suite.Code, text(c.answer), text("5"))
		if strings.Contains(c.id, "multiple") && turns[len(turns)-1] != suite.SearchTools+` {"query":"`+c.id+`"}` {
			t.Errorf("%s is named, and then %q", c.id, turns)
		}
		if signed := len(turns) == 2 && strings.HasPrefix(turns[1], suite.ExecuteCode); signed != c.signed || signed == (err != nil) {
			t.Errorf("%s: signed %v, %v in\n%s", c.id, signed, err, c.answer)
		}
	}
}

func TestCodeRunsPrograms(t *testing.T) {
	task := &suite.Task{
		Queries: [][]string{{"a file", "a sum"}, {"get_sum"}},
		Programs: []suite.Program{
			{File: "largest-sum-look.ts", Needs: []string{"filesystem.read_text_file", "everything.get_sum"}, Fails: "no such"},
			{File: "addition.py"},
		},
		Answer: func(_ *suite.ScriptRun, output string) string { return strings.ToUpper(output) },
	}
	turns, answer, err := play(t, task, suite.Code, text(pythonAnswer, "nothing"), text(typescriptAnswer), failed("no such file"), text("sum\n"))
	if err != nil || answer != "SUM\n" || len(turns) != 4 {
		t.Fatalf("%q, %q, %v", turns, answer, err)
	}
	if want := `sallyport__search_tools {"language":"typescript","query":"a file"}; sallyport__search_tools {"language":"typescript","query":"a sum"}`; turns[0] != want {
		t.Errorf("searched %s", turns[0])
	}
	var run struct{ Code, Language string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(turns[2], "sallyport__execute_code ")), &run); err != nil || run.Language != "typescript" || !strings.Contains(run.Code, "/w/files/pairs.csv") {
		t.Errorf("ran %+v, %v", run, err)
	}
	if strings.Contains(turns[3], "language") {
		t.Errorf("Python is said, and is what is run anyway: %s", turns[3])
	}
	task.Answer = nil
	if _, answer, _ := play(t, task, suite.Code, text(pythonAnswer, typescriptAnswer), failed("no such file"), text(" sum\n")); answer != "sum" {
		t.Errorf("answered %q", answer)
	}
}

// A program that fails where it should not, or does not where it should, or otherwise, ends the task.
func TestCodeFailsAsItShould(t *testing.T) {
	for _, c := range []struct {
		fails  string
		result []tokencount.Result
		want   string
	}{
		{"", failed("oh"), "the program gave (error: true) oh"},
		{"KeyError", text("KeyError"), "the program gave (error: false) KeyError"},
		{"KeyError", failed("no sandbox"), "the program gave (error: true) no sandbox"},
	} {
		task := &suite.Task{Queries: [][]string{{"sum"}}, Programs: []suite.Program{{File: "addition.py", Fails: c.fails}, {File: "addition.py"}}}
		if _, _, err := play(t, task, suite.Code, text(fullPython), c.result); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%q: %v", c.fails, err)
		}
	}
	task := &suite.Task{Queries: [][]string{{"sum"}}, Programs: []suite.Program{{File: "none.py"}}}
	if _, _, err := play(t, task, suite.Code, text("")); err == nil || err.Error() != "play: no program none.py" {
		t.Error(err)
	}
}
