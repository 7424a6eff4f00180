package tokens_test

import (
	"strings"
	"testing"

	"sallyport/internal/tokens"
)

// The counts are those of OpenAI's tiktoken, the last text's from its cookbook: it tells the vocabularies apart.
func TestCount(t *testing.T) {
	for name, test := range map[string]struct {
		load     func() (*tokens.Counter, error)
		birthday int
	}{"o200k_base": {tokens.O200k, 8}, "cl100k_base": {tokens.Cl100k, 9}} {
		counter, err := test.load()
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]int{
			"": 0, "hello world": 2, "search_tools": 2, strings.Repeat(" the", 100): 100, "お誕生日おめでとう": test.birthday,
		} {
			if got, err := counter.Count(text); err != nil || got != want {
				t.Errorf("%s: Count(%.20q) = %d, %v; want %d", name, text, got, err, want)
			}
		}
	}
}
