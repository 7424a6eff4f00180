package tokens_test

import (
	"encoding/json"
	"os"
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
			" \n  \n": 1, // one piece of both expressions
		} {
			if got, err := counter.Count(text); err != nil || got != want {
				t.Errorf("%s: Count(%.20q) = %d, %v; want %d", name, text, got, err, want)
			}
		}
	}
}

// The counts of tiktoken-go, which tools/vocabulary writes.
func TestCountAsTiktoken(t *testing.T) {
	data, err := os.ReadFile("testdata/counts.json")
	if err != nil {
		t.Fatal(err)
	}
	var samples []struct {
		Text          string
		O200k, Cl100k int
	}
	if err := json.Unmarshal(data, &samples); err != nil || len(samples) < 300 {
		t.Fatal(len(samples), err)
	}
	for _, s := range samples {
		if got := count(t, tokens.O200k, s.Text); got != s.O200k {
			t.Errorf("o200k_base: %.60q has %d tokens, want %d", s.Text, got, s.O200k)
		}
		if got := count(t, tokens.Cl100k, s.Text); got != s.Cl100k {
			t.Errorf("cl100k_base: %.60q has %d tokens, want %d", s.Text, got, s.Cl100k)
		}
	}
}

func count(t *testing.T, load func() (*tokens.Counter, error), text string) int {
	t.Helper()
	counter, err := load()
	if err != nil {
		t.Fatal(err)
	}
	n, err := counter.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func BenchmarkCount(b *testing.B) {
	counter, err := tokens.O200k()
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("The quick brown fox jumps over {\"a\": 12345}.\n", 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := counter.Count(text); err != nil {
			b.Fatal(err)
		}
	}
}
