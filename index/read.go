package index

import (
	"slices"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2/analysis"

	"sallyport/index/wordvec"
)

// mode is a way to turn the words of a text into terms.
type mode int

const (
	asName  mode = iota // parts of identifiers, neighbours joined, stemmed
	asProse             // the same without stop words
	asStems             // parts, stemmed, without stop words and fillers
	asWords             // unstemmed parts that are long enough for spelling correction
	modeCount
)

// terms returns the terms of text. It is the reference implementation for reader.
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

// wordCache caches the analysis of words. It is safe for concurrent use.
type wordCache struct {
	analyzers *analyzers
	table     *table
	known     sync.Map // word -> *senses
}

// wordTerms is the analysis of a word: its terms by mode, and its words in the vector model.
type wordTerms struct {
	terms  [asWords][]uint32
	words  []string // its terms asWords, not numbered since few texts need them
	vector []wordvec.Word
}

// textReader analyzes texts word by word, with the same result as terms but faster: the
// terms of a word do not depend on its neighbours, and a catalog repeats its words
// often. It is not safe for concurrent use; several readers may share a glossary.
type textReader struct {
	*wordCache
	local map[string]*wordTerms // the entries used so far, without locking
}

func newTextReader(g *wordCache) *textReader {
	return &textReader{wordCache: g, local: map[string]*wordTerms{}}
}

// read appends the analyses of the words of text to found.
func (r *textReader) read(found []*wordTerms, text string) []*wordTerms {
	if !ascii(text) {
		text = string(r.analyzers.fold.Filter([]byte(text)))
		if strings.ContainsFunc(text, spaceless) { // adjacent letters form pairs
			return append(found, r.analyzeText(text))
		}
		scanWords(text, func(start, end int, _ bool) { found = append(found, r.word(text[start:end])) })
		return found
	}
	for start, end := nextWord(text, 0); start < end; start, end = nextWord(text, end) {
		found = append(found, r.word(text[start:end]))
	}
	return found
}

func (r *textReader) word(word string) *wordTerms {
	known := r.local[word]
	if known == nil {
		known = r.lookUp(word)
		r.local[word] = known
	}
	return known
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// nextWord is scanWords for ASCII text: it returns the bounds of the first word from i on, which are equal if there is
// none.
func nextWord(text string, i int) (start, end int) {
	for i < len(text) && !wordByte(text[i]) {
		i++
	}
	start = i
	for i < len(text) && (wordByte(text[i]) || i+1 < len(text) && wordByte(text[i+1]) && (text[i] == '-' || text[i] == '.' || text[i] == '\'')) {
		i++
	}
	return start, i
}

func wordByte(b byte) bool {
	return b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || b == '_'
}

func (g *wordCache) lookUp(word string) *wordTerms {
	if known, ok := g.known.Load(word); ok {
		return known.(*wordTerms)
	}
	found := g.analyzeWord(word)
	g.known.Store(word, found)
	return found
}

// analyzeText analyzes a text of any script with terms, as if it were one word.
func (g *wordCache) analyzeText(text string) *wordTerms {
	s := wordTerms{words: g.analyzers.terms(text, asWords)}
	for m := range asWords {
		s.terms[m] = g.table.ids(g.analyzers.terms(text, m))
	}
	scanWords(text, func(start, end int, _ bool) {
		s.vector = append(s.vector, embeddingWords(g.analyzers.model, g.analyzers.list(text[start:end]))...)
	})
	return &s
}

// analyzeWord analyzes a word for all modes at once. It passes a word that is not ASCII to whole.
func (g *wordCache) analyzeWord(word string) *wordTerms {
	if !ascii(word) {
		return g.analyzeText(word)
	}
	var s wordTerms
	parts := [][]byte{[]byte(word)}
	if !simple(parts[0]) {
		parts = splitWord(parts[0])
	}
	for _, p := range parts {
		part := strings.ToLower(string(p))
		g.addPart(&s, part, false)
		if part[0] >= 'a' { // see embeddingWords
			s.vector = append(s.vector, g.analyzers.model.Find(part))
		}
	}
	if len(parts) > 1 {
		for _, t := range appendJoined(nil, &analysis.Token{}, parts) {
			g.addPart(&s, strings.ToLower(string(t.Term)), true)
		}
	}
	return &s
}

func (g *wordCache) addPart(s *wordTerms, part string, joined bool) {
	id := g.table.id(string(g.analyzers.stem.stem([]byte(part))))
	stop := g.analyzers.stops[part]
	s.terms[asName] = append(s.terms[asName], id)
	if !stop {
		s.terms[asProse] = append(s.terms[asProse], id)
	}
	if !joined && !stop && !g.analyzers.fillers[part] {
		s.terms[asStems] = append(s.terms[asStems], id)
	}
	if !joined && len(part) >= minFuzzy {
		s.words = append(s.words, part)
	}
}

// scanWords calls found for each word of text. It keeps identifiers whole: "_" belongs
// to a word, and "-", "." and an apostrophe do between two letters. For scripts
// without spaces it reports each letter, with single set.
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

// table numbers terms in the order of their first occurrence. It is safe for concurrent use.
type table struct {
	mu      sync.Mutex
	numbers map[string]uint32
	texts   []string
}

func newTable() *table { return &table{numbers: map[string]uint32{}} }

// ids returns the numbers of terms.
func (t *table) ids(terms []string) []uint32 {
	ids := make([]uint32, len(terms))
	for i, term := range terms {
		ids[i] = t.id(term)
	}
	return ids
}

// id returns the number of a term.
func (t *table) id(term string) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := t.numbers[term]
	if !ok {
		id = uint32(len(t.texts))
		term = strings.Clone(term) // do not retain the whole text
		t.numbers[term] = id
		t.texts = append(t.texts, term)
	}
	return id
}

// list returns the terms by number. Later additions do not change the result.
func (t *table) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.texts)
}
