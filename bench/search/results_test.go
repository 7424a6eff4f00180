package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/doc"
	"sallyport/internal/testutil/judge"
)

// TestDocument holds docs/benchmarks.md to the results beside it.
func TestDocument(t *testing.T) {
	o, all, err := readMeans("../results/issue-11-search.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := doc.Section("../../docs/benchmarks.md", "search")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(section(o, all)), got); diff != "" {
		t.Errorf("docs/benchmarks.md is not what make bench-search has found (-results +document):\n%s", diff)
	}
}

// TestKeep writes what a run has found and reads it again.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "doc.md"), "# Search\n<!-- begin search -->\n<!-- end search -->\n")
	write(t, filepath.Join(dir, "livemcp", "tools.jsonl"), "{}\n")
	rows := []row{
		{Engine: ours, Group: "livemcp/step", ID: "1", Tuned: true, Scores: judge.Scores{Recall1: 1, NDCG10: 1, MRR: 1}, First: 300, Until: 300},
		{Engine: ours, Group: "livemcp/step", ID: "2", Weak: true, Scores: judge.Scores{NDCG10: .5}, First: 400, Until: 1200},
		{Engine: ours, Group: "catalog/none", ID: "3", None: true, Weak: true},
		{Engine: plain, Group: "livemcp/step", ID: "1", Tuned: true, Scores: judge.Scores{NDCG10: .125}, First: -1, Until: -1},
	}
	f := flags{sources: sources{retrieval: dir, catalog: dir, queries: dir}, engines: strings.Join(engineNames(), ","), half: "each", out: filepath.Join(dir, "out"), doc: filepath.Join(dir, "doc.md"), tokens: true}
	if f.whole(rows) {
		t.Error("two of four sets count as the whole")
	}
	if err := f.keep(t.Context(), "the tables  \n", rows); err != nil {
		t.Fatal(err)
	}
	o, all, err := readMeans(f.out + ".jsonl")
	if err != nil || len(o.Digests) != 1 || len(o.Digests["livemcp"]) != 16 {
		t.Errorf("%+v, %v: want the digest of the one set that is here", o, err)
	}
	if diff := cmp.Diff(mean{Engine: ours, Group: "livemcp/step", Half: "all", N: 2, Scores: judge.Scores{Recall1: .5, NDCG10: .75, MRR: .5}, Refused: .5, First: 350, Until: 750}, all[0]); diff != "" {
		t.Errorf("the mean of both (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(f.out + ".txt")
	if err != nil || !strings.HasSuffix(string(text), "\n\nthe tables\n") || !strings.Contains(string(text), "# bfcl          sha256 not here\n") {
		t.Errorf("%s %v", text, err)
	}
	got, err := doc.Section(f.doc, "search")
	for _, part := range []string{"| livemcp/step | 2 | 0.50 | 0.00 | 0.00 | 0.75 | 0.50 | 0.12 |  |", "Of 1 queries that nothing fits, it says so of 100 %. Of the 2 others it says wrongly that nothing fits of 50.0 %."} {
		if err != nil || !strings.Contains(got, part) {
			t.Errorf("the document does not say %q, %v:\n%s", part, err, got)
		}
	}
}
