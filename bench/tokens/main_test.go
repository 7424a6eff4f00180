package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/bench/doc"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/bench/tokens/report"
)

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-sizes 3":              `"3" is neither 1, a number from 5 on, nor all`,
		"-sizes 5,many":         `"many" is neither`,
		"-only (":               "read -only: error parsing regexp",
		"-report -sizes 5":      "-report takes no -only and no -sizes",
		"-report -out /no/file": "no such file",
		"quick":                 "no argument is taken: quick",
		"-fast":                 "flag provided but not defined",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("tokens %s: %v, want %s", args, err, want)
		}
	}
}

func TestLevels(t *testing.T) {
	dir := t.TempDir()
	catalogue := `{"tools": [{"name": "add", "description": "Adds two numbers. Twice.", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}}, {"name": "nop", "inputSchema": {"type": "object"}}]}`
	if err := os.WriteFile(filepath.Join(dir, "sums.json"), []byte(catalogue), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := levels(t.Context(), dir)
	if err != nil || len(l.Rows) != 7 {
		t.Fatalf("levels are %+v, %v", l, err)
	}
	if first := l.Rows[0]; first.Name != "sums" || first.Tools != 2 || first.Counts[0] <= first.Counts[2] {
		t.Errorf("the server's row is %+v", first)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-levels", "-catalog", dir}, &out, io.Discard); err != nil || !strings.Contains(out.String(), "all, median") {
		t.Errorf("printed: %s, %v", out.String(), err)
	}
	out.Reset()
	if err := run(t.Context(), []string{"-levels", "-catalog", t.TempDir()}, &out, io.Discard); err != nil || !strings.HasPrefix(out.String(), "skipped: no catalogue") {
		t.Errorf("without a catalogue: %s, %v", out.String(), err)
	}
}

// TestModes counts the lists of all modes in front of one catalogue.
func TestModes(t *testing.T) {
	dir := t.TempDir()
	catalogue := `{"tools": [{"name": "add", "description": "` + strings.Repeat("Adds two numbers. ", 200) + `", "inputSchema": {"type": "object"}}]}`
	if err := os.WriteFile(filepath.Join(dir, "sums.json"), []byte(catalogue), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-modes", "-catalog", dir}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var servers, tools, code, search, direct int
	lines := strings.Split(out.String(), "\n")
	if _, err := fmt.Sscanf(lines[2], "| %d | %d | %d | %d | %d |", &servers, &tools, &code, &search, &direct); err != nil || servers != 1 || tools != 1 || search < 50 || search >= code || direct < 600 {
		t.Errorf("%s: %v", lines[2], err)
	}
	if lines[3] != "skipped: 10 servers, there are 1 in "+dir {
		t.Error(lines[3])
	}
}

// The documents are made from the lines alone, and stay as they are if an answer is wrong.
func TestReportAgain(t *testing.T) {
	dir := t.TempDir()
	lines, err := os.ReadFile("report/testdata/small.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	page, tables := filepath.Join(dir, "benchmarks.md"), filepath.Join(dir, "benchmarks", "tokens.md")
	if err := os.Mkdir(filepath.Dir(tables), 0o700); err != nil {
		t.Fatal(err)
	}
	section := "<!-- begin tokens -->\nold\n<!-- end tokens -->\n"
	old := "<!-- begin tokens-losses --><!-- end tokens-losses -->\n" + section
	for path, text := range map[string]string{filepath.Join(dir, "r.jsonl"): string(lines), page: old, tables: section} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-report", "-out", filepath.Join(dir, "r"), "-docs", dir}
	err = run(t.Context(), args, io.Discard, io.Discard)
	if got, _ := os.ReadFile(page); err == nil || !strings.Contains(err.Error(), "1 of 15 answers are wrong") || string(got) != old {
		t.Errorf("with a wrong answer: %v, and the page is\n%s", err, got)
	}
	right := strings.ReplaceAll(string(lines), `"correct":false`, `"correct":true`)
	if err := os.WriteFile(filepath.Join(dir, "r.jsonl"), []byte(right), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), args, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(strings.NewReader(right))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := doc.ReadTexts(dir, report.Name); err != nil || got != r.Texts().Wrapped() {
		t.Errorf("the texts are\n%+v\n%v", got, err)
	}
	for _, name := range []string{"r.txt", "benchmarks/tokens.svg", "benchmarks/tasks-1.svg", "benchmarks/tasks.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s was not made: %v", name, err)
		}
	}
}

func TestSizes(t *testing.T) {
	one, two := &suite.Task{Upstreams: []string{"git"}}, &suite.Task{Upstreams: []string{"git", "memory"}}
	for _, test := range []struct {
		flag string
		more int
		task *suite.Task
		want string
	}{
		{"", 31, one, "1 5 10 25 36"}, {"", 31, two, "5 10 25 36"}, {"", 0, one, "1 5"}, {"", 20, one, "1 5 10 25"}, {"all,5", 31, one, "5 36"}, {"7", 31, one, "7"},
	} {
		o := &options{}
		if err := o.setSizes(test.flag); err != nil {
			t.Fatal(err)
		}
		if got := strings.Trim(fmt.Sprint(sizesOf(test.task, o.chooseSizes(test.more))), "[]"); got != test.want {
			t.Errorf("-sizes %q with %d: %v, want %s", test.flag, test.more, got, test.want)
		}
	}
}

func TestTries(t *testing.T) {
	calls := func(names ...string) (turn tokencount.Turn) {
		for _, name := range names {
			turn.Calls = append(turn.Calls, tokencount.Call{Tool: name})
		}
		return turn
	}
	tr := &tokencount.Transcript{Turns: []tokencount.Turn{calls(suite.SearchTools, suite.SearchTools), calls(suite.SearchTool), calls(suite.SearchTools, suite.ExecuteCode), calls("git__git_log"), calls()}}
	if n := tries(tr); n != 2 {
		t.Errorf("%d turns searched, want 2", n)
	}
}
