package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/doc"
	"sallyport/bench/stats"
)

// TestDocument compares the documents with the results.
func TestDocument(t *testing.T) {
	m, rows, err := readResults("../results/latency.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := doc.ReadTexts("../../docs/explanation", page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(texts(*m, rows).Wrapped(), got); diff != "" {
		t.Errorf("docs/explanation/benchmarks.md and benchmarks/latency.md (make bench-latency ARGS=-report; -results +documents):\n%s", diff)
	}
}

// TestSummaryHasAllRows checks that the rows that the summary names are measured.
func TestSummaryHasAllRows(t *testing.T) {
	_, rows, err := readResults("../results/latency.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loads() {
		for _, language := range []string{"python", "typescript"} {
			if find(rows, l.name, language).N == 0 {
				t.Errorf("no row %s, %s", l.name, language)
			}
		}
	}
	n := 0
	for _, r := range rows {
		if inSummary(r) {
			n++
		}
	}
	if n != 10 {
		t.Errorf("%d rows are in the second table, want 10", n)
	}
}

// TestSection: what was written is read again, and each row is in one table with its ratio.
func TestSection(t *testing.T) {
	rows := []row{
		{Case: "warm pool", Language: "python", Unit: "ms", Compared: stats.Compare([]float64{6, 5, 24}, []float64{12, 15, 30}), Note: "so it was", Bars: []bar{atMost("ratio", 1, .4)}},
		{Case: "query of 2,000 tools", Unit: "ms", Compared: stats.Compare([]float64{.5}, []float64{.1}), Bars: []bar{atMost("p50 ms", .1, .5)}},
		{Case: "waiting sandbox, PSS", Unit: "MB", Compared: stats.Compare([]float64{34}, nil)},
	}
	m := &machine{Cores: 2, CPU: "a processor", Load: "0.25 0.5 1 2/93 18601", Versions: map[string]string{"commit": "0123456789ab", "tools": "a catalogue"}}
	o := &options{out: filepath.Join(t.TempDir(), "out")}
	if err := write(o, m, rows); err != nil {
		t.Fatal(err)
	}
	back, read, err := readResults(o.out + ".jsonl")
	if diff := cmp.Diff(rows, read); err != nil || diff != "" {
		t.Errorf("%v, other rows (-written +read):\n%s", err, diff)
	}
	made := texts(*back, read)
	text := made.Tables
	for _, part := range []string{
		"2 x a processor", "load 0.25 at", "commit 0123456789ab",
		"| warm pool, python | ms | 3 | 5.00 | 6.00 | 24.00 | 15.00 | 0.40 | ratio 0.4 <= 1 met |", "| query of 2,000 tools | ms | 1 | 0.50 | 0.50 | 0.50 | 0.10 | 5.00 | p50 ms 0.5 <= 0.1 MISSED |",
		"| waiting sandbox, PSS | MB | 1 | 34.00 | 34.00 | 34.00 |  |  |  |", "Tools: a catalogue", "1 of 2 targets are met.",
	} {
		if strings.Count(text, part) != 1 {
			t.Errorf("want %q once in:\n%s", part, text)
		}
	}
	if want := "| query of 2,000 tools | p50 ms 0.5 | <= 0.1 |\n"; !strings.HasSuffix(made.Losses, want) || !strings.HasPrefix(made.Losses, "- In 1 of 2 rows") {
		t.Errorf("want one loss, %q, in:\n%s", want, made.Losses)
	}
}
