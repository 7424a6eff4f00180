package index

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPhrasesOfTheFolder(t *testing.T) {
	words, err := newAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	table, err := readPhrases(words, phraseFiles)
	if err != nil {
		t.Fatal(err)
	}
	if len(table) == 0 {
		t.Error("no phrases")
	}
}

func TestPhrasesAreReadStrictly(t *testing.T) {
	words, err := newAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"a\nget rid of delete":            "line 2: want one >",
		"a > b > c":                       "line 1: want one >",
		"> delete":                        "want 1 to 5 words",
		"get rid of, > delete":            "want 1 to 5 words",
		"one two three four five six >":   "want words",
		"one two three four five six > b": "want 1 to 5 words",
		"get rid of > delete;":            "want words between",
		"~ away > delete":                 "want one ~, between words",
		"throw ~ > delete":                "want one ~, between words",
		"a ~ b ~ c > delete":              "want one ~, between words",
	} {
		if strings.HasPrefix(line, "a\n") {
			line = "# said > meant\n" + line[2:]
		}
		err := phraseTable{}.read(words, line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", line, err, want)
		}
	}
}

func TestPhrasesInQueries(t *testing.T) {
	words, err := newAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	table := phraseTable{}
	if err := table.read(words, `
		get rid of, throw away > delete remove
		bring up to date, bring > update # the longer one wins
		rid > ride
		turn ~ off > disable
		email > send; mail
		删除 > delete`); err != nil {
		t.Fatal(err)
	}
	table.sort()
	for text, want := range map[string][]string{
		"Getting rid of it":           {"get rid of"},
		"throw it all away":           {"throw away"},
		"throw the whole thing away":  nil,
		"bring the list up to date":   {"bring"},
		"bring it up to date, please": {"bring up to date"},
		"emails get rid":              {"email", "rid"},
		"turn off the kitchen lights": {"turn off"},
		"turn the kitchen lights off": {"turn off"},
		"turn a b c d lights off":     nil,
		"删除":                          {"删除"},
		"":                            nil,
	} {
		var got []string
		for _, s := range table.find(words.list(text)) {
			got = append(got, strings.Join(s.stems, " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
