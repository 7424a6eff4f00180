package tokens_test

import (
	"strings"
	"testing"

	"sallyport/internal/tokens"
)

// The counts are those of OpenAI's tiktoken for o200k_base.
func TestCount(t *testing.T) {
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		text string
		want int
	}{{"", 0}, {"hello world", 2}, {"search_tools", 2}, {strings.Repeat(" the", 100), 100}} {
		if got, err := counter.Count(test.text); err != nil || got != test.want {
			t.Errorf("Count(%.20q) = %d, %v; want %d", test.text, got, err, test.want)
		}
	}
}
