package index

import (
	"slices"

	"sallyport/index/meaning"
)

// facts are what the index keeps of a document's text: all that searches need
// besides the names. They do not change, and of equal documents they are equal.
// The numbers are of terms in the store's table.
type facts struct {
	// terms are the pooled terms; terms[:likely] are those of fields in which a word may be meant that is misspelt in a query.
	terms  []uint32
	likely int
	// freqs are what the terms count, in parts of 1/freqUnit.
	freqs []uint16
	// words are the words of the names as they are written, fit the stems of the
	// name, lead the terms of names and first sentence, that tell what it is for.
	words, fit, lead []uint32
	vector           meaning.Vector
}

// freqUnit is what an occurrence that counts 1 has as bleve's frequency. What is
// beyond the 127 that fit in 16 bits makes no difference to BM25.
const (
	freqUnit = 512
	maxFreq  = 1<<16 - 1
)

// learner analyzes documents. It is for one goroutine.
type learner struct {
	*reader
	weigh weights
	count map[uint32]float64 // what each term of the document at hand counts
	ids   []uint32
	// vectored are the words of the model that a word of a text is.
	vectored map[string][]meaning.Word
}

func newLearner(g *glossary, weigh weights) *learner {
	return &learner{reader: newReader(g), weigh: weigh, count: map[uint32]float64{}, vectored: map[string][]meaning.Word{}}
}

// learn analyzes d. Its occurrences of a term are pooled over the fields here,
// each weighed by its field and how long that is, so that a search reads one
// list of postings for a term.
func (l *learner) learn(d Doc) *facts {
	clear(l.count)
	f := &facts{}
	for _, likely := range []bool{true, false} {
		for field := range fieldCount {
			if field.likely() == likely {
				l.pool(d, field)
			}
		}
		f.take(l.count)
	}
	name := d.wire()
	f.lead = l.distinct(asProse, name, d.Title, first(cutLead(d.Description)))
	f.fit = l.distinct(asStems, name)
	f.words = l.distinct(asWords, d.ID.Upstream, d.ID.Name, d.Title)
	f.vector = l.vectorOf(d)
	return f
}

// pool adds the occurrences in one field to the count.
func (l *learner) pool(d Doc, f field) {
	mode := asName
	if f.prose() {
		mode = asProse
	}
	l.ids = l.ids[:0]
	for text := range d.texts(f) {
		l.ids = l.read(l.ids, text, mode)
	}
	worth := l.weigh.occurrence(f, len(l.ids))
	for _, id := range l.ids {
		l.count[id] += worth
	}
}

// take makes the count the frequencies of the terms. Those that it has already stay in front.
func (f *facts) take(count map[uint32]float64) {
	old := len(f.terms)
	terms := slices.Grow(slices.Clone(f.terms), len(count)-old)
	for id := range count {
		if _, ok := slices.BinarySearch(f.terms, id); !ok {
			terms = append(terms, id)
		}
	}
	slices.Sort(terms[old:])
	f.terms, f.freqs = terms, make([]uint16, len(terms))
	if old == 0 {
		f.likely = len(terms)
	}
	for i, id := range terms {
		f.freqs[i] = uint16(min(max(count[id]*freqUnit+.5, 1), maxFreq))
	}
}

// distinct returns the terms of texts, each once.
func (l *learner) distinct(m mode, texts ...string) []uint32 {
	l.ids = l.ids[:0]
	for _, text := range texts {
		l.ids = l.read(l.ids, text, m)
	}
	slices.Sort(l.ids)
	return slices.Clone(slices.Compact(l.ids))
}
