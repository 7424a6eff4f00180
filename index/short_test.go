package index

import (
	"strings"
	"testing"
)

// TestShortQueries asks a large catalog for a word or two: what a tool says of
// itself is an answer, what none says is not.
func TestShortQueries(t *testing.T) {
	ix, err := New(readCatalog(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for text, want := range map[string]struct {
		first string // a part of the first id
		weak  bool
	}{
		"screenshot": {"take_screenshot", false}, "navigate": {"navigate", false}, "sms": {"sms_send", false}, "list pods": {"kubernetes_flux", false},
		"teams message": {"channel_message", false}, "create_isue": {"create_issue", true}, "create isue": {"create_issue", true},
		"create invoice": {"", true}, "get weather": {"", true},
	} {
		res, err := ix.Search(t.Context(), Query{Text: text})
		if err != nil || len(res.Hits) == 0 || res.Weak != want.weak || !strings.Contains(res.Hits[0].ID.String(), want.first) {
			t.Errorf("%s: weak %v, hits %v, %v; want %+v", text, res.Weak, res.Hits, err, want)
		}
	}
}
