package baseline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/bench/corpus"
	"sallyport/bench/search/baseline"
	"sallyport/internal/testutil/ireval"
)

// TestLean: what is left out of the lean index is nothing that a query sees: the same tools in the same order.
func TestLean(t *testing.T) {
	from, err := corpus.Open(t.TempDir(), "../queries.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	set := &ireval.Set{Entries: from.Tools(300)}
	whole, err := baseline.Scorch(set, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	lean, err := baseline.Lean(set)
	if err != nil {
		t.Fatal(err)
	}
	defer lean.Close()
	found := 0
	texts := from.Queries[:20:20]
	for _, e := range set.Entries[:20] {
		texts = append(texts, e.Tool.Description, e.Tool.Wire+" "+e.Server)
	}
	for _, text := range texts {
		want, err := whole.Ordered().Search(t.Context(), text, 10)
		if err != nil {
			t.Fatal(err)
		}
		got, err := lean.Ordered().Search(t.Context(), text, 10)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v, tools (-default +lean):\n%s", text, err, diff)
		}
		found += len(got)
	}
	if found < 100 {
		t.Errorf("all queries together found %d tools: too few to compare", found)
	}
}
