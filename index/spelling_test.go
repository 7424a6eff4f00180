package index

import (
	"fmt"
	"slices"
	"testing"
)

// TestAlikeIsBounded: an upstream that makes up millions of words must not make
// everybody's misspelt queries slow, nor keep them from finding honest words near by.
func TestAlikeIsBounded(t *testing.T) {
	var words []string
	for i := range 50_000 {
		words = append(words, fmt.Sprintf("rzz%08d", i))
	}
	words = append(words, "repositori", "request", "sheet")
	slices.Sort(words)
	got := fuzzyCandidates(words, "repositry")
	if !slices.Contains(got, "repositori") || len(got) > maxCandidates {
		t.Errorf("%d words are compared, the one meant among them: %v", len(got), slices.Contains(got, "repositori"))
	}
	if got := fuzzyCandidates(words, "rzz"); len(got) != maxCandidates {
		t.Errorf("%d words that all begin like it are compared", len(got))
	}
	if got := fuzzyCandidates(words, "sheat"); !slices.Equal(got, []string{"sheet"}) {
		t.Errorf("of few words that begin alike, %q are compared", got)
	}
}
