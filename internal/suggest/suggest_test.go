package suggest_test

import (
	"testing"

	"sallyport/internal/suggest"
)

func TestOf(t *testing.T) {
	names := []string{"create_entities", "delete_entities", "read_graph", "search_nodes", "a", "b"}
	for word, want := range map[string]string{
		"create_entity":  "create_entities",
		"createEntities": "create_entities",
		"raed_graph":     "read_graph",
		"graph":          "read_graph",
		"SEARCH-NODES":   "search_nodes",
		"bb":             "b",
		"unrelated":      "",
		"":               "",
	} {
		if got := suggest.Of(word, names); got != want {
			t.Errorf("Of(%q) = %q, want %q", word, got, want)
		}
	}
	if got := suggest.Of("x", nil); got != "" {
		t.Errorf("Of nothing = %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"日本", "日木", 1}} {
		if got := suggest.Distance(test.a, test.b); got != test.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
