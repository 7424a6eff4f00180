package index

import (
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2/analysis"
)

// mode is one of the ways in which the words of a text become terms.
type mode int

const (
	asName  mode = iota // parts of identifiers, neighbours joined, stemmed
	asProse             // the same without stop words
	asWords             // parts as they are written, unless they are too short to be misspelt
	asStems             // parts, stemmed, without all that says nothing
	modeCount
)

// terms is the way of a text to its terms, step by step.
func (a *analyzers) terms(text string, m mode) []string {
	var terms []string
	switch m {
	case asName, asProse:
		analyzer := a.name
		if m == asProse {
			analyzer = a.prose
		}
		for _, t := range analyzer.Analyze([]byte(text)) {
			terms = append(terms, string(t.Term))
		}
	case asWords:
		for _, w := range a.list(text) {
			if len(w.text) >= minFuzzy {
				terms = append(terms, w.text)
			}
		}
	default:
		for _, w := range a.list(text) {
			if !w.stop {
				terms = append(terms, w.stem)
			}
		}
	}
	return terms
}

// reader is a shorter way from texts to terms, with the same end: what became of
// a word does not depend on the words beside it, and a catalog repeats its words
// many times over. It is for one goroutine and a while: it forgets nothing.
type reader struct {
	words *analyzers
	table *table
	known [modeCount]map[string][]uint32
}

func newReader(words *analyzers, t *table) *reader {
	r := &reader{words: words, table: t}
	for m := range r.known {
		r.known[m] = map[string][]uint32{}
	}
	return r
}

// read appends the terms of text to ids.
func (r *reader) read(ids []uint32, text string, m mode) []uint32 {
	if strings.ContainsFunc(text, func(c rune) bool { return c >= 0x80 }) {
		text = string(r.words.fold.Filter([]byte(text)))
		if strings.ContainsFunc(text, spaceless) { // letters pair up with their neighbours
			return append(ids, r.table.ids(r.words.terms(text, m))...)
		}
	}
	scanWords(text, func(start, end int, _ bool) {
		word := text[start:end]
		known, ok := r.known[m][word]
		if !ok {
			known = r.table.ids(r.words.terms(word, m))
			r.known[m][word] = known
		}
		ids = append(ids, known...)
	})
	return ids
}

// scanWords cuts text into words and keeps identifiers whole: "_" belongs to a
// word, and "-", "." and an apostrophe do between two letters. Scripts that do
// without spaces come out letter by letter, single.
func scanWords[T string | []byte](text T, found func(start, end int, single bool)) {
	start := -1
	end := func(i int) {
		if start >= 0 {
			found(start, i, false)
			start = -1
		}
	}
	for i, r := range string(text) {
		switch {
		case wordRune(r) && !spaceless(r):
			if start < 0 {
				start = i
			}
		case spaceless(r):
			end(i)
			found(i, i+len(string(r)), true)
		case start < 0 || !glueRune(r) || !wordFollows(string(text[i+len(string(r)):min(len(text), i+len(string(r))+4)])):
			end(i)
		}
	}
	end(len(text))
}

func tokenize(text []byte) analysis.TokenStream {
	tokens := make(analysis.TokenStream, 0, len(text)/6+1)
	scanWords(text, func(start, end int, single bool) {
		t := &analysis.Token{Term: text[start:end:end], Start: start, End: end, Position: len(tokens) + 1, Type: analysis.AlphaNumeric}
		if single {
			t.Type = analysis.Ideographic
		}
		tokens = append(tokens, t)
	})
	return tokens
}

// table numbers terms in the order in which they turn up. It is safe for concurrent use.
type table struct {
	mu    sync.Mutex
	id    map[string]uint32
	texts []string
}

func newTable() *table { return &table{id: map[string]uint32{}} }

// ids returns the numbers of terms.
func (t *table) ids(terms []string) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]uint32, len(terms))
	for i, term := range terms {
		id, ok := t.id[term]
		if !ok {
			id = uint32(len(t.texts))
			term = strings.Clone(term) // no more of the text than this
			t.id[term] = id
			t.texts = append(t.texts, term)
		}
		ids[i] = id
	}
	return ids
}

// list returns the terms by number. What comes later does not change the result.
func (t *table) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.texts[:len(t.texts):len(t.texts)]
}
