package index

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/char/asciifolding"
	"github.com/blevesearch/bleve/v2/analysis/lang/cjk"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/stop"
	"github.com/blevesearch/bleve/v2/analysis/token/unicodenorm"

	"sallyport/index/wordvec"
)

// analyzers turns text into terms, by a pipeline for names and one for prose. Only
// prose drops stop words: a name may consist of those alone ("who_am_i").
type analyzers struct {
	name, prose analysis.Analyzer
	fold        *foldFilter // the first step of both
	// split returns words in lower case, not yet stemmed.
	split *analysis.DefaultAnalyzer
	stem  *stemmer
	stops analysis.TokenMap
	model *wordvec.Model
	// fillers are the stop words of queries only.
	fillers map[string]bool
	// products is the result of productTable.
	products map[string]bool
	// verbs holds the stems of the words that a subquery may begin with.
	verbs map[string]bool
}

func newAnalyzers() (*analyzers, error) {
	stops := analysis.NewTokenMap()
	if err := stops.LoadBytes(en.EnglishStopWords); err != nil {
		return nil, err
	}
	compose, err := unicodenorm.NewUnicodeNormalizeFilter(unicodenorm.NFKC)
	if err != nil {
		return nil, err
	}
	model, err := wordvec.New()
	if err != nil {
		return nil, fmt.Errorf("read word vectors: %w", err)
	}
	a := &analyzers{model: model, fold: &foldFilter{compose: compose, ascii: asciifolding.New()}, stem: &stemmer{}, stops: stops, fillers: wordList(fillers), products: productTable()}
	chars := []analysis.CharFilter{a.fold}
	lower, bigram := lowercase.NewLowerCaseFilter(), cjk.NewCJKBigramFilter(false)
	joined := &splitFilter{join: true}
	a.split = &analysis.DefaultAnalyzer{CharFilters: chars, Tokenizer: wordTokenizer{},
		TokenFilters: []analysis.TokenFilter{&splitFilter{}, lower, bigram}}
	a.name = &analysis.DefaultAnalyzer{CharFilters: chars, Tokenizer: wordTokenizer{},
		TokenFilters: []analysis.TokenFilter{joined, lower, bigram, a.stem}}
	a.prose = &analysis.DefaultAnalyzer{CharFilters: chars, Tokenizer: wordTokenizer{},
		TokenFilters: []analysis.TokenFilter{joined, lower, stop.NewStopTokensFilter(stops), bigram, a.stem}}
	a.verbs = a.verbStems()
	return a, nil
}

// foldFilter normalizes Unicode: it composes characters, narrows full-width forms
// and removes the marks of Latin letters. It returns ASCII text unchanged.
type foldFilter struct {
	compose analysis.TokenFilter
	ascii   analysis.CharFilter
}

func (f *foldFilter) Filter(text []byte) []byte {
	if !hasHighByte(text) {
		return text
	}
	folded := make([]byte, 0, len(text)+len(text)/8)
	for part := range bytes.SplitAfterSeq(text, []byte(" ")) { // no character composes with a space before it
		if hasHighByte(part) {
			stream := f.compose.Filter(analysis.TokenStream{{Term: bytes.ToValidUTF8(part, []byte(" "))}})
			part = f.ascii.Filter(stream[0].Term)
		}
		folded = append(folded, part...)
	}
	return folded
}

func hasHighByte(text []byte) bool {
	for _, b := range text {
		if b >= 0x80 {
			return true
		}
	}
	return false
}

// wordTokenizer cuts text into words as scanWords does, for bleve.
type wordTokenizer struct{}

func (wordTokenizer) Tokenize(text []byte) analysis.TokenStream { return tokenize(text) }

func wordRune(r rune) bool {
	if r < 0x80 {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M)
}

func glueRune(r rune) bool { return r == '-' || r == '.' || r == '\'' || r == '’' || r == '‐' }

func wordFollows(rest string) bool {
	for _, r := range rest {
		return wordRune(r) && !spaceless(r)
	}
	return false
}

// spaceless reports whether r belongs to a script without spaces between words,
// or to Hangul, which appends endings to words.
func spaceless(r rune) bool {
	return r == 'ー' || r >= 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// Limits of one word. A longer text is probably not a word: only its start is indexed.
const (
	maxWordRunes = 48
	maxWordParts = 12
)

// splitFilter splits identifiers into their parts. With join it also emits
// adjacent parts and all parts joined, so that "GitHub" matches git, hub and
// github, and pull_request matches pullrequest.
type splitFilter struct{ join bool }

func (f *splitFilter) Filter(in analysis.TokenStream) analysis.TokenStream {
	out := make(analysis.TokenStream, 0, len(in)+len(in)/4)
	for _, t := range in {
		if t.Type == analysis.Ideographic || simple(t.Term) {
			out = append(out, t)
			continue
		}
		parts := splitWord(t.Term)
		for _, p := range parts {
			out = append(out, part(t, p))
		}
		if f.join && len(parts) > 1 {
			out = appendJoined(out, t, parts)
		}
	}
	return out
}

// simple reports whether w is a short lower-case ASCII word, which needs no splitting.
func simple(w []byte) bool {
	for _, b := range w {
		if b < 'a' || b > 'z' {
			return false
		}
	}
	return len(w) <= maxWordRunes
}

func appendJoined(out analysis.TokenStream, t *analysis.Token, parts [][]byte) analysis.TokenStream {
	for i := range len(parts) - 1 {
		out = append(out, part(t, join(parts[i:i+2])))
	}
	if len(parts) > 2 {
		out = append(out, part(t, join(parts)))
	}
	return out
}

func join(parts [][]byte) []byte { return cutRunes(bytes.Join(parts, nil)) }

// part returns a token for a piece of t.
func part(t *analysis.Token, term []byte) *analysis.Token {
	p := *t
	p.Term = term
	return &p
}

// splitWord splits one word at separators, at changes of case and between letters and digits:
// "getHTTPUrl2" becomes get, HTTP, Url, 2. It keeps a plural of capitals ("APIs") whole and drops a possessive "'s".
func splitWord(w []byte) [][]byte {
	var parts [][]byte
	for _, piece := range bytes.FieldsFunc(w, func(r rune) bool { return r == '_' || glueRune(r) }) {
		if len(parts) > 0 && len(piece) == 1 && (piece[0] == 's' || piece[0] == 'S') && possessive(w) {
			continue
		}
		parts = appendCased(parts, piece)
		if len(parts) >= maxWordParts {
			return parts[:maxWordParts]
		}
	}
	return parts
}

func possessive(w []byte) bool {
	return bytes.HasSuffix(w, []byte("'s")) || bytes.HasSuffix(w, []byte("’s")) || bytes.HasSuffix(w, []byte("'S"))
}

func appendCased(parts [][]byte, piece []byte) [][]byte {
	runes := []rune(string(piece))
	start, from := 0, 0 // in runes, in bytes
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || boundary(runes, i) {
			to := from + len(string(runes[start:i]))
			parts = append(parts, cutRunes(piece[from:to:to]))
			start, from = i, to
		}
	}
	return parts
}

// boundary reports whether a new part begins at runes[i].
func boundary(runes []rune, i int) bool {
	before, r := runes[i-1], runes[i]
	switch {
	case unicode.IsNumber(before) != unicode.IsNumber(r) && !unicode.IsMark(r):
		return true
	case unicode.IsLower(before) && unicode.IsUpper(r):
		return true
	case unicode.IsUpper(before) && unicode.IsUpper(r) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
		return !(runes[i+1] == 's' && (i+2 == len(runes) || unicode.IsNumber(runes[i+2])))
	}
	return false
}

func cutRunes(w []byte) []byte {
	if len(w) <= maxWordRunes {
		return w
	}
	return []byte(string([]rune(string(w))[:min(maxWordRunes, len([]rune(string(w))))]))
}

// stemmer is bleve's English stemmer. It leaves words in other scripts unchanged.
type stemmer struct{ filter en.EnglishStemmerFilter }

func (s *stemmer) Filter(in analysis.TokenStream) analysis.TokenStream {
	for _, t := range in {
		if t.Type == analysis.AlphaNumeric {
			t.Term = s.stem(t.Term)
		}
	}
	return in
}

func (s *stemmer) stem(w []byte) []byte {
	if len(w) < 3 || hasHighByte(w) {
		return w
	}
	return s.filter.Filter(analysis.TokenStream{{Term: w}})[0].Term
}

// wordList returns the set of the words in text, which white space separates.
func wordList(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}
