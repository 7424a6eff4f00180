package index

import (
	"slices"

	"sallyport/index/wordvec"
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
	vector           wordvec.Vector
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
	// texts are the words of the document at hand; those of the last upstream stay.
	texts    [fieldCount][]*senses
	upstream [2]string
	// counts are what the terms count, by number; those of another document are old.
	counts  []count
	doc     uint32
	touched []uint32 // the terms of the document, as they turn up
	buffer  []*senses
	ids     []uint32
}

// count is what a term counts in one document, which is numbered from 1.
type count struct {
	doc   uint32
	worth float32
}

func newLearner(g *glossary, weigh weights) *learner {
	return &learner{reader: newReader(g), weigh: weigh}
}

// learn analyzes d. Its occurrences of a term are pooled over the fields here,
// each weighed by its field and how long that is, so that a search reads one
// list of postings for a term.
func (l *learner) learn(d Doc) *facts {
	l.readTexts(d)
	l.doc++
	l.touched = l.touched[:0]
	f := &facts{}
	for _, likely := range []bool{true, false} {
		for field := range fieldCount {
			if field.likely() == likely {
				l.pool(field)
			}
		}
		if likely {
			f.likely = len(l.touched)
		}
	}
	f.terms, f.freqs = slices.Clone(l.touched), make([]uint16, len(l.touched))
	for i, id := range f.terms {
		f.freqs[i] = uint16(min(max(l.counts[id].worth*freqUnit+.5, 1), maxFreq))
	}
	f.lead = l.distinct(asProse, l.texts[fieldName], l.texts[fieldTitle], l.texts[fieldLead])
	f.fit = l.distinct(asStems, l.texts[fieldName])
	l.buffer = l.read(l.read(l.buffer[:0], d.ID.Upstream), d.ID.Name)
	f.words = l.written(l.buffer, l.texts[fieldTitle])
	f.vector = l.vector()
	return f
}

// readTexts reads all texts of d, that of its upstream once for all documents that follow each other.
func (l *learner) readTexts(d Doc) {
	for f := range fieldCount {
		if of := [2]string{d.ID.Upstream, d.Upstream}; f == fieldUpstream {
			if l.doc > 0 && of == l.upstream {
				continue
			}
			l.upstream = of
		}
		l.texts[f] = l.texts[f][:0]
		for text := range d.texts(f) {
			l.texts[f] = l.read(l.texts[f], text)
		}
	}
}

// pool adds the occurrences in one field to the counts.
func (l *learner) pool(f field) {
	mode := asName
	if f.prose() {
		mode = asProse
	}
	length := 0
	for _, s := range l.texts[f] {
		length += len(s.terms[mode])
	}
	worth := float32(l.weigh.occurrence(f, length))
	for _, s := range l.texts[f] {
		for _, id := range s.terms[mode] {
			l.add(id, worth)
		}
	}
}

func (l *learner) add(id uint32, worth float32) {
	if int(id) >= len(l.counts) {
		l.counts = append(l.counts, make([]count, int(id)+1+len(l.counts)/4-len(l.counts))...)
	}
	c := &l.counts[id]
	if c.doc != l.doc {
		*c = count{doc: l.doc}
		l.touched = append(l.touched, id)
	}
	c.worth += worth
}

// distinct returns the terms of texts, each once.
func (l *learner) distinct(m mode, texts ...[]*senses) []uint32 {
	l.ids = l.ids[:0]
	for _, text := range texts {
		for _, s := range text {
			l.ids = append(l.ids, s.terms[m]...)
		}
	}
	slices.Sort(l.ids)
	return slices.Clone(slices.Compact(l.ids))
}

// written returns the words of texts as they are written, each once.
func (l *learner) written(texts ...[]*senses) []uint32 {
	l.ids = l.ids[:0]
	for _, text := range texts {
		for _, s := range text {
			for _, word := range s.words {
				l.ids = append(l.ids, l.table.id(word))
			}
		}
	}
	slices.Sort(l.ids)
	return slices.Clone(slices.Compact(l.ids))
}
