package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/doc"
	"sallyport/internal/testutil/ireval"
)

// TestDocument compares the documents with the results.
func TestDocument(t *testing.T) {
	o, all, err := readMeans("../results/search.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := doc.ReadTexts("../../docs/explanation", pageName)
	if err != nil {
		t.Fatal(err)
	}
	want, err := texts(o, all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Wrapped(), got); diff != "" {
		t.Errorf("docs/explanation/benchmarks.md and benchmarks/search.md (make bench-search ARGS=-report; -results +documents):\n%s", diff)
	}
	if drawn, err := os.ReadFile("../../docs/explanation/benchmarks/" + plotName); err != nil || string(drawn) != plot(all) {
		t.Errorf("%s is not of the results (make bench-search ARGS=-report): %v", plotName, err)
	}
}

// TestKeep writes what a run has found and reads it again.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	section := "<!-- begin search -->\n<!-- end search -->\n"
	write(t, filepath.Join(dir, "benchmarks.md"), "# Search\n<!-- begin search-losses -->\n<!-- end search-losses -->\n"+section)
	write(t, filepath.Join(dir, "benchmarks", "search.md"), section)
	write(t, filepath.Join(dir, "livemcp", "tools.jsonl"), "{}\n")
	rows := []row{
		{Engine: ours, Group: "livemcp/step", ID: "1", Tuned: true, Confidence: .9, Scores: ireval.Scores{Recall1: 1, NDCG10: 1, MRR: 1, Hit5: 1}, First: 300, Until: 300},
		{Engine: ours, Group: "livemcp/step", ID: "2", Apart: true, Weak: true, Confidence: .25, Scores: ireval.Scores{NDCG10: .5, Hit5: 1}, First: 400, Until: 1200},
		{Engine: ours, Group: "catalog/none", ID: "3", None: true, Weak: true, Confidence: .2},
		{Engine: plain, Group: "livemcp/step", ID: "1", Tuned: true, Scores: ireval.Scores{NDCG10: .125}, First: -1, Until: -1},
		{Engine: plain, Group: "livemcp/step", ID: "2", Scores: ireval.Scores{NDCG10: .625}, First: -1, Until: -1},
		{Engine: informed, Group: "livemcp/step", ID: "2", Scores: ireval.Scores{NDCG10: .75}, First: -1, Until: -1},
	}
	f := flags{sources: sources{retrieval: dir, catalog: dir, queries: dir}, engines: strings.Join(engineNames(), ","), half: "each", out: filepath.Join(dir, "out"), docs: dir, tokens: true}
	if f.whole(rows) {
		t.Error("two of four sets count as the whole")
	}
	partsKeepNothing(t, f)
	if err := f.keep(t.Context(), "the tables  \n", rows); err != nil {
		t.Fatal(err)
	}
	o, all, err := readMeans(f.out + ".jsonl")
	if err != nil || len(o.Digests) != 1 || len(o.Digests["livemcp"]) != 16 {
		t.Errorf("%+v, %v: want the digest of the one set that is here", o, err)
	}
	if diff := cmp.Diff(mean{Engine: ours, Group: "livemcp/step", Half: "all", N: 2, Scores: ireval.Scores{Recall1: .5, NDCG10: .75, MRR: .5, Hit5: 1}, Refused: .5, Reliability: []bin{2: {1, 1, .25}, 9: {1, 1, .9}}, Answered: 2, Denied: .5, First: 350, Until: 750}, all[0]); diff != "" {
		t.Errorf("the mean of both (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(f.out + ".txt")
	if err != nil || !strings.HasSuffix(string(text), "\n\nthe tables\n") || !strings.Contains(string(text), "# bfcl          sha256 not here\n") {
		t.Errorf("%s %v", text, err)
	}
	if drawn, err := os.ReadFile(filepath.Join(dir, "benchmarks", plotName)); err != nil || string(drawn) != plot(all) || strings.Count(string(drawn), "<circle") != 4 {
		t.Errorf("%s, %v: want a point for each half that has one bin, and one in the legend", drawn, err)
	}
	made, err := doc.ReadTexts(f.docs, pageName)
	got := made.Losses + "\n" + made.Summary + "\n" + made.Tables
	for _, part := range []string{
		"| livemcp/step | 1 | 0.000 | 0.000 | 0.000 | 0.500 | 0.000 | 1.000 | 1.000 | 0.750 | 0.500 | 1 |",
		"| livemcp/step | 1 | ndcg@10 | at least 0.82 | 0.500 short | 1.000 | 0.750 short | **MISSED** |",
		"| no tool fits | 1 | reported | at least 0.65 | 1.000 |  | 1.000 | met |",
		"| good queries, gold in the first 5 | 1 | reported | at most 0.03 | 1.000 short | 0.000 | 0.500 short | **MISSED** |",
		"| every set |  | metrics below bleve's default | none | 1 | 0 | 0 | **MISSED** |",
		"![Share of right answers over the estimate](reliability.svg)",
		"| 0.2 to 0.3 | 2 | 0.500 | 0.225 | 0 |  |",
		"| 0.9 to 1.0 | 0 |  | 0.000 | 1 | 1.000 |",
		"| livemcp/step | ndcg@10 | 0.500 | 0.750 bleve+about | 0.750 | 0.750 bleve+about | 0.724 FTS5 |",
		"\nFTS5: SQLite's",
		"\n- livemcp/step, even (1 queries), ndcg@10: 0.500, against 0.625 bleve, 0.750 bleve+about",
	} {
		if err != nil || !strings.Contains(got, part) {
			t.Errorf("the document does not say %q, %v:\n%s", part, err, got)
		}
	}
}

// TestBarsAskBothHalves: a bar that all queries reach and the half that checks does not is missed, and the other way round.
func TestBarsAskBothHalves(t *testing.T) {
	for _, test := range []struct {
		even, all float64
		want      string
	}{
		{.73, .71, "| 0.730 |  | 0.710 short | **MISSED** |"},
		{.71, .73, "| 0.710 short |  | 0.730 | **MISSED** |"},
		{.72, .72, "| 0.720 |  | 0.720 | met |"},
	} {
		var b strings.Builder
		pageBars(&b, []mean{
			{Engine: ours, Group: "livemcp/route", Half: "even", N: 1, Scores: ireval.Scores{Hit5: test.even}},
			{Engine: ours, Group: "livemcp/route", Half: "all", N: 2, Scores: ireval.Scores{Hit5: test.all}},
		})
		if !strings.Contains(b.String(), "| livemcp/route | 1 | hit@5 | at least 0.72 "+test.want) {
			t.Errorf("want %s in\n%s", test.want, b.String())
		}
	}
}

// partsKeepNothing: what is less than all of it takes nothing's place.
func partsKeepNothing(t *testing.T, f flags) {
	t.Helper()
	var rows []row
	for _, name := range setNames() {
		rows = append(rows, row{Engine: ours, Group: name + "/any"})
	}
	if !f.whole(rows) {
		t.Error("all sets are not the whole")
	}
	for name, less := range map[string]func(*flags){
		"one set": func(f *flags) { f.sets = "livemcp" }, "a half": func(f *flags) { f.half = "even" }, "no tokens": func(f *flags) { f.tokens = false },
		"an engine": func(f *flags) { f.engines = ours }, "a budget": func(f *flags) { f.budget = 100 }, "nowhere": func(f *flags) { f.out = "" },
	} {
		part := f
		if less(&part); part.whole(rows) {
			t.Error(name, "counts as the whole")
		}
	}
}
