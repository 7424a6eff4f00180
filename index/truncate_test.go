package index_test

import (
	"strings"
	"testing"

	"sallyport/index"
	"sallyport/internal/tool"
)

// TestFit: an upstream that says too much is cut where it says most, and its names stay.
func TestFit(t *testing.T) {
	short := index.Doc{ID: tool.ID{Upstream: "up", Name: "short"}, Description: "Adds two numbers.", Params: []index.Param{{Name: "left", Description: "the first"}}}
	long := index.Doc{ID: tool.ID{Upstream: "up", Name: "long"}, Wire: "LONG", Title: "Long", Description: strings.Repeat("ünsinn ", 100)}
	for range 50 {
		long.Params = append(long.Params, index.Param{Name: strings.Repeat("p", 200), Description: strings.Repeat("d", 300)})
	}
	fits, kept, head := short, short, long
	index.Truncate([]*index.Doc{&fits}, 1000)
	if fits.Description != short.Description || len(fits.Params) != 1 {
		t.Errorf("what fits became %+v", fits)
	}
	index.Truncate([]*index.Doc{&head, &kept}, 5000)
	if kept.Description != short.Description || kept.Params[0] != short.Params[0] {
		t.Errorf("what is short became %+v", kept)
	}
	size := len(head.Title) + len(head.Description)
	for _, p := range head.Params {
		if p.Name == "" {
			t.Error("a parameter without a name is left")
		}
		size += len(p.Name) + len(p.Description)
	}
	if size > 5000 || size < 4500 || head.Wire != "LONG" || head.Description != long.Description {
		t.Errorf("%d bytes of what is long are left, %q %.20q", size, head.Wire, head.Description)
	}
	if len(long.Params) != 50 || long.Params[49].Description == "" {
		t.Error("what was handed in has changed beyond the document")
	}
}

// TestFitManyTools: ten thousand tools of the most that a schema gives are as much as a few.
func TestFitManyTools(t *testing.T) {
	docs := make([]*index.Doc, 10_000)
	for i := range docs {
		docs[i] = &index.Doc{Description: strings.Repeat("x ", 2000), Values: strings.Repeat("v ", 300)}
	}
	index.Truncate(docs, 4<<20)
	sum := 0
	for _, d := range docs {
		sum += len(d.Description) + len(d.Values)
	}
	if sum > 4<<20 || sum < 3<<20 {
		t.Errorf("%d bytes are left", sum)
	}
}
