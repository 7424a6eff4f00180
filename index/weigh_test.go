package index_test

import (
	"slices"
	"testing"

	"sallyport/index"
	"sallyport/internal/tool"
)

func TestWeigh(t *testing.T) {
	var docs []index.Doc
	for _, name := range []string{"create_issue", "create_note", "create_branch", "merge_branch"} {
		docs = append(docs, index.Doc{ID: tool.ID{Upstream: "up", Name: name}})
	}
	ix, err := index.New(docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := ix.Weigh(t.Context(), "upstream:up Creating the createIssue for zyx")
	var stems []string
	for stem := range got {
		stems = append(stems, stem)
	}
	slices.Sort(stems)
	if want := []string{"creat", "issu", "zyx"}; !slices.Equal(stems, want) || !(got["creat"] < got["issu"] && got["issu"] < got["zyx"]) || got["creat"] <= 0 {
		t.Errorf("got %v, want %v, the rarer the more", got, want)
	}
	if got := ix.Weigh(t.Context(), " "); len(got) != 0 {
		t.Errorf("of nothing %v", got)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ix.Weigh(t.Context(), "issue"); got != nil {
		t.Errorf("after Close %v", got)
	}
}
