package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil/ireval"
)

// TestTokensUntilGold asks a real gateway for one of 300 tools that are all
// alike: one that the query names is seen at once, one that it does not is not
// seen in two answers, and there is nothing to look for where nothing fits.
func TestTokensUntilGold(t *testing.T) {
	dir := t.TempDir()
	var tools strings.Builder
	for i := range 300 {
		fmt.Fprintf(&tools, `{"id":"a/keep_%[1]d","server":"the archive","name":"keep_%[1]d","description":"Keep a record.","input_schema":{"type":"object"}}`+"\n", i)
	}
	write(t, filepath.Join(dir, "livemcp", "tools.jsonl"), tools.String())
	write(t, filepath.Join(dir, "livemcp", "queries.jsonl"), `{"id":"named","query":"keep_217","gold":["a/keep_217"]}
{"id":"drowned","query":"record","gold":["a/keep_99"]}
{"id":"none","query":"record","gold":[]}
`)
	s, err := ireval.Read(dir, "livemcp")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	rows, err := runSet(t.Context(), s, []string{ours}, &gatewayOptions{show: "keep_217", out: &out})
	if err != nil {
		t.Fatal(err)
	}
	named, drowned, none := rows[0], rows[1], rows[2]
	if !strings.Contains(out.String(), "named: ") || strings.Contains(out.String(), "drowned: ") || !strings.Contains(out.String(), "keep_217(") {
		t.Errorf("shown: %s", out.String())
	}
	if !named.Signed || drowned.Signed {
		t.Errorf("signed: %v, %v", named.Signed, drowned.Signed)
	}
	if !named.Seen || named.First <= 0 || named.Until != named.First {
		t.Errorf("named: %+v", named)
	}
	if drowned.Seen || drowned.Until <= drowned.First {
		t.Errorf("drowned: %+v", drowned)
	}
	if none.Seen || none.First != drowned.First || none.Until != none.First {
		t.Errorf("none: %+v", none)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReport runs the program as it is typed and looks at what a reader goes by.
func TestReport(t *testing.T) {
	read(t, "mcpproxygold")
	file := filepath.Join(t.TempDir(), "before.json")
	f := flags{sources: here, sets: "mcpproxygold", engines: "sallyport,bleve", half: "each", json: file}
	var out strings.Builder
	if err := run(t.Context(), f, &out); err != nil {
		t.Fatal(err)
	}
	f.json, f.compare, f.worst, f.engines = "", file, 3, "sallyport"
	if err := run(t.Context(), f, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ndcg@10", "even", "refused wrongly", "below those of bleve", "against the earlier run", "the worst 3 of", "gold  "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, out.String())
		}
	}
	for _, wrong := range []flags{{sources: here, half: "left"}, {sources: here, half: "all", sets: "bflc"}, {sources: here, half: "all", sets: "mcpproxygold", engines: "google"}} {
		if err := run(t.Context(), wrong, &out); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

// TestBelow counts by hand: one metric of one half is worse.
func TestBelow(t *testing.T) {
	rows := []row{
		{Engine: "a", Group: "s/k", ID: "1", Tuned: true, Scores: ireval.Scores{Recall1: 1, MRR: 1}},
		{Engine: "a", Group: "s/k", ID: "2", Scores: ireval.Scores{MRR: .5}},
		{Engine: "b", Group: "s/k", ID: "1", Tuned: true, Scores: ireval.Scores{Recall1: 1, MRR: .25}},
		{Engine: "b", Group: "s/k", ID: "2", Scores: ireval.Scores{MRR: 1}},
	}
	got := strings.Join(below(rows, "a", "b"), "\n")
	if want := "s/k, even, mrr: 0.500 against 1.000 (n 1)"; got != want {
		t.Errorf("below: %s\nwant   %s", got, want)
	}
}

func TestDuel(t *testing.T) {
	var d comparison
	for _, pair := range [][2]float64{{.5, 1}, {.5, .25}, {.3, .3}, {0, .1}} {
		d.add(pair[0], pair[1])
	}
	if want := (comparison{wins: 2, losses: 1, ties: 1}); d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
}
