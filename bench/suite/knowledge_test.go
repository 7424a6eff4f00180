package suite_test

import (
	"strings"
	"testing"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
)

// Answers of search_tools, shortened.
const (
	cutLog = `from servers.git import ...
  git_log(*, path: str = ".", maxCount: int = 10, author: str = ..., oneline=...) -> {success: bool, commits: list[{...}], totalCount: int}
    View commit history with optional filtering by author`
	fullLog = `from servers.git import git_log
git.git_log(*, path: str = ".", maxCount: int = 10, author: str = ...) -> {success: bool, commits: list[{hash: str, author?: str, extra: {...}}], totalCount: int}

View commit history`
	tools = `from servers.filesystem import ...
  read_text_file(path: str, *, tail: float = ..., head: float = ...) -> {content: str}
  read_multiple_files(paths: list[str]) -> {content: str}
  list_directory(path: str) -> {content: str}
from servers.sqlite import ...
  query(sql: str) -> Any
  execute(sql: str) -> Any
from servers.memory import ...
  create_entities(entities: list[{name: str, entityType: str, observations: list[str]}]) -> {entities: list[{name: str}]}`
	typedTools = `import { ... } from "servers/filesystem"
  read_text_file({path: string, head?: number}): Promise<{content: string}>
import { ... } from "servers/everything"
  get_sum({a: number, b: number}): Promise<any>`
	columns = "{files} {files}/orders/2026-01.csv: order_id, date, customer_id, sku, quantity, unit_price; table customers (id, name), best_customer, ordered in"
)

// run is a task of some programs after one search.
func run(t *testing.T, prompt, found string, programs []suite.Program, outputs ...string) (turns []string, err error) {
	t.Helper()
	answers := [][]tokencount.Result{text(found)}
	for _, output := range outputs {
		answers = append(answers, []tokencount.Result{{Text: output, Error: strings.Contains(output, "Error")}})
	}
	task := &suite.Task{Prompt: prompt, Queries: [][]string{{"words"}}, Programs: programs}
	turns, _, err = play(t, task, suite.Code, answers...)
	return turns, err
}

// A program takes nothing for granted that the model has not read: neither words, nor what is in a result.
func TestProgramsKnowNothingElse(t *testing.T) {
	one := func(file string) []suite.Program { return []suite.Program{{File: file}} }
	for name, c := range map[string]struct {
		prompt, found string
		programs      []suite.Program
		outputs       []string
		want          string // "" where nothing is guessed
	}{
		"a result of any type":         {columns, tools, one("best-customers.py"), nil, "best-customers.py guesses what sqlite.query returns, which was never looked at"},
		"that was looked at":           {columns, tools, []suite.Program{{File: "best-customers-look.py"}, {File: "best-customers.py"}}, []string{`[{"id":1,"name":"x"}]`, "x"}, ""},
		"that failed":                  {columns, tools, []suite.Program{{File: "best-customers-look.py", Fails: "Error"}, {File: "best-customers.py"}}, []string{"Error: no"}, "best-customers.py guesses what sqlite.query returns, which was never looked at"},
		"that is shown as it is":       {"tickets with status open and priority urgent", tools, one("urgent-tickets.py"), []string{"[]"}, ""},
		"that is left":                 {columns + " load_orders", tools, one("load-orders.py"), []string{"1 2"}, ""},
		"of any type, in TypeScript":   {"{files}/pairs.csv", typedTools, one("largest-sum.ts"), nil, "largest-sum.ts guesses what everything.get_sum returns, which was never looked at"},
		"looked at, in TypeScript":     {"{files}/pairs.csv", typedTools, []suite.Program{{File: "largest-sum-look.ts"}, {File: "largest-sum.ts"}}, []string{"The sum is 3.", "5"}, ""},
		"what a signature leaves out":  {"author of {repo}", cutLog, one("commits-by-author.py"), []string{cutLog}, "commits-by-author.py guesses what there is in what git.git_log returns"},
		"what it tells in full":        {"author of {repo}", cutLog, one("commits-by-author.py"), []string{fullLog, "x 1"}, ""},
		"a name of a file":             {"notes in {files}/notes", tools, one("open-items.py"), nil, "open-items.py guesses note, which it has read nowhere"},
		"a name that was listed":       {"notes in {files}/notes", tools, []suite.Program{{File: "open-items-look.py"}, {File: "open-items.py"}}, []string{"note-01.md", "1 note-01.md"}, ""},
		"a key":                        {"{files}/products.json: category lighting, sku", tools, one("heaviest-products.py"), nil, "heaviest-products.py guesses weight_kg, which it has read nowhere"},
		"a key that nothing needs yet": {"{files}/products.json", tools, one("heaviest-products-look.py"), []string{"1"}, ""},
		"a property":                   {columns + " products.json: sku", typedTools, one("weight-by-month.ts"), nil, "weight-by-month.ts guesses weight_kg, which it has read nowhere"},
		"a property that was named":    {columns + " products.json: sku, weight_kg", typedTools, one("weight-by-month.ts"), []string{"2026-01 1.0"}, ""},
		"a mistake":                    {"{files}/products.json", tools, []suite.Program{{File: "heaviest-products-guess.py", Fails: "KeyError"}, {File: "heaviest-products-look.py"}}, []string{"KeyError: 'weight'", "1"}, ""},
	} {
		_, err := run(t, c.prompt, c.found, c.programs, c.outputs...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != "play: "+c.want) {
			t.Errorf("%s: %v, not %q", name, err, c.want)
		}
	}
}

// What a signature has left out, and a program takes, is asked for once and in full.
func TestCutSignaturesAreAskedFor(t *testing.T) {
	programs := []suite.Program{{File: "commits-by-author.py", Needs: []string{"git.git_log"}}}
	turns, err := run(t, "{repo}", cutLog, programs, fullLog, "x 1")
	if want := suite.SearchTools + ` {"query":"git_log upstream:git detail:full"}`; err != nil || len(turns) != 3 || turns[1] != want {
		t.Errorf("%q, %v", turns, err)
	}
	if turns, err = run(t, "{repo}", fullLog, programs, "x 1"); err != nil || len(turns) != 2 {
		t.Errorf("where nothing is left out: %q, %v", turns, err)
	}
}
