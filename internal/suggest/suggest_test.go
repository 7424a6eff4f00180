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
		"c_d_e":          "",
	} {
		if got := suggest.Of(word, names); got != want {
			t.Errorf("Of(%q) = %q, want %q", word, got, want)
		}
	}
	// Equal but for case and separators is nearer than a part of the name.
	for word, want := range map[string]string{"cc_recipients": "ccRecipients", "per_page": "perPage", "project_id": "projectId"} {
		if got := suggest.Of(word, []string{"bccRecipients", "ccRecipients", "page", "perPage", "project", "projectId"}); got != want {
			t.Errorf("Of(%q) = %q, want %q", word, got, want)
		}
	}
	if got := suggest.Of("x", nil); got != "" {
		t.Errorf("Of nothing = %q", got)
	}
}

func TestForm(t *testing.T) {
	names := []string{"perPage", "page", "user_name", "userName", "X-Id"}
	for word, want := range map[string]string{"per_page": "perPage", "PerPage": "perPage", "x_id": "X-Id", "username": "", "pages": "", "": "", "_": ""} {
		if got := suggest.Form(word, names); got != want {
			t.Errorf("Form(%q) = %q, want %q", word, got, want)
		}
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
