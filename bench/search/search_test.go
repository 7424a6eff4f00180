package main

import (
	"errors"
	"fmt"
	"testing"

	"sallyport/internal/testutil/ireval"
)

// here is where the sets lie, seen from this folder.
var here = sources{retrieval: "../../../shared/retrieval", catalog: "../../../shared/catalog", queries: "queries.jsonl"}

func read(t *testing.T, name string) *ireval.Set {
	t.Helper()
	s, err := here.read(name)
	if errors.Is(err, ireval.ErrNoData) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestQueriesNameToolsThatAreThere holds queries.jsonl against the catalogue, and to what README.md says of it.
func TestQueriesNameToolsThatAreThere(t *testing.T) {
	s := read(t, "catalog")
	for _, fault := range s.Check() {
		t.Error(fault)
	}
	styles := map[string]int{}
	for i, q := range s.Queries {
		styles[q.Style]++
		if want := fmt.Sprintf("cat-%03d", i+1); q.ID != want {
			t.Errorf("%s stands at the place of %s: odd ids are for tuning", q.ID, want)
		}
		if (len(q.Gold) == 0) != (q.Style == "none") {
			t.Errorf("%s: style %s with the gold %q", q.ID, q.Style, q.Gold)
		}
	}
	for style, least := range map[string]int{"keyword": 50, "plain": 50, "paraphrase": 100, "oblique": 50, "none": 50} {
		if styles[style] < least {
			t.Errorf("%d queries of style %s, at least %d are promised", styles[style], style, least)
		}
		delete(styles, style)
	}
	if len(styles) > 0 {
		t.Errorf("unknown styles %v", styles)
	}
}
