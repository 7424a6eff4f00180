package index

import (
	"slices"
	"testing"
)

func TestDivide(t *testing.T) {
	words, err := newAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"create an issue and post a message":                      {"create an issue", "post a message"},
		"stage my changes, commit them and then push":             {"stage my changes", "commit them", "push"},
		"read the graph; then its size":                           {"read the graph", "then its size"},
		"get current news, latest developments, headlines today":  {"get current news, latest developments, headlines today"},
		"an issue with title, body and labels":                    {"an issue with title, body and labels"},
		"the price of gold, and please can you convert it?":       {"the price of gold", "please can you convert it", ""},
		"1. read the file\n2. delete the event":                   {"1", "read the file", "delete the event"},
		"What is new? The latest of everything. And the weather.": {"What is new", "The latest of everything", "And the weather", ""},
	} {
		if got := words.divide(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
