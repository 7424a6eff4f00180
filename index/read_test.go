package index

import (
	"slices"
	"testing"
)

// TestReader checks the short way from texts to terms against the way step by step.
func TestReader(t *testing.T) {
	words, err := newAnalyzers()
	if err != nil {
		t.Fatal(err)
	}
	r := newTextReader(&wordCache{analyzers: words, table: newTable()})
	for _, d := range readCatalog(t) {
		for f := range fieldCount {
			for text := range d.texts(f) {
				sameTerms(t, r, text)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, text := range []string{
		"getHTTPUrl2 of a pull_request", "使用 GitHub 搜索 issues的API", "the user's e-mail, “don’t” v2.0.1-", "ＡＢＣ ﬁle naïve Ærø ½ x²", "Приве́т мир ёлка", "a\xffb_\xf0c", "한국어 테스트 APIs", "İstanbul ſtraße ǅ",
	} {
		f.Add(text)
	}
	words, err := newAnalyzers()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sameTerms(t, newTextReader(&wordCache{analyzers: words, table: newTable()}), text)
	})
}

func sameTerms(t *testing.T, r *textReader, text string) {
	t.Helper()
	for m := range modeCount {
		want := r.analyzers.terms(text, m)
		for range 2 { // the second time, the words are known
			var got []string
			for _, s := range r.read(nil, text) {
				if m == asWords {
					got = append(got, s.words...)
					continue
				}
				for _, id := range s.terms[m] {
					got = append(got, r.table.texts[id])
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("mode %d, %q:\n got %q\nwant %q", m, text, got, want)
			}
		}
	}
}
