package index

import (
	"slices"

	"sallyport/index/wordvec"
)

// facts is the result of analyzing a document: all that searches need besides the
// names. It is immutable, and equal for equal documents. Its numbers refer to terms
// in the store's table.
type facts struct {
	// terms holds the pooled terms; terms[:likely] come from spell-checked fields.
	terms           []uint32
	numSpellChecked int
	// freqs holds the weights of the terms, in units of 1/freqUnit.
	freqs []uint16
	// words holds the unstemmed words of the names, fit the stems of the name, lead
	// the terms of the names and of the first sentence.
	words, nameStems, lead []uint32
	vector                 wordvec.Vector
}

// freqUnit is bleve's frequency for an occurrence of weight 1. Weights beyond 127,
// which do not fit in 16 bits, make no difference to BM25.
const (
	freqUnit = 512
	maxFreq  = 1<<16 - 1
)

// docAnalyzer analyzes documents. It is not safe for concurrent use.
type docAnalyzer struct {
	*textReader
	weigh weights
	// texts holds the words of the current document. The words of the last upstream are reused.
	texts    [fieldCount][]*wordTerms
	upstream [2]string
	// counts holds the weights of terms, by number; entries of another document are stale.
	counts  []count
	doc     uint32
	touched []uint32 // the terms of the current document, in order of occurrence
	buffer  []*wordTerms
	ids     []uint32
}

// count is the weight of a term in one document. Documents are numbered from 1.
type count struct {
	doc   uint32
	worth float32
}

func newDocAnalyzer(g *wordCache, weigh weights) *docAnalyzer {
	return &docAnalyzer{textReader: newTextReader(g), weigh: weigh}
}

// analyze analyzes d. It pools the occurrences of a term over the fields, weighted by
// field and field length, so that a search reads one postings list per term.
func (l *docAnalyzer) analyze(d Doc) *facts {
	l.readTexts(d)
	l.doc++
	l.touched = l.touched[:0]
	f := &facts{}
	for _, likely := range []bool{true, false} {
		for field := range fieldCount {
			if field.spellChecked() == likely {
				l.pool(field)
			}
		}
		if likely {
			f.numSpellChecked = len(l.touched)
		}
	}
	f.terms, f.freqs = slices.Clone(l.touched), make([]uint16, len(l.touched))
	for i, id := range f.terms {
		f.freqs[i] = uint16(min(max(l.counts[id].worth*freqUnit+.5, 1), maxFreq))
	}
	f.lead = l.distinct(asProse, l.texts[fieldName], l.texts[fieldTitle], l.texts[fieldLead])
	f.nameStems = l.distinct(asStems, l.texts[fieldName])
	l.buffer = l.read(l.read(l.buffer[:0], d.ID.Upstream), d.ID.Name)
	f.words = l.writtenWords(l.buffer, l.texts[fieldTitle])
	f.vector = l.vector()
	return f
}

// readTexts reads all texts of d. Consecutive documents of an upstream share the upstream's text.
func (l *docAnalyzer) readTexts(d Doc) {
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
func (l *docAnalyzer) pool(f field) {
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

func (l *docAnalyzer) add(id uint32, worth float32) {
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

// distinct returns the distinct terms of texts, sorted by number.
func (l *docAnalyzer) distinct(m mode, texts ...[]*wordTerms) []uint32 {
	l.ids = l.ids[:0]
	for _, text := range texts {
		for _, s := range text {
			l.ids = append(l.ids, s.terms[m]...)
		}
	}
	slices.Sort(l.ids)
	return slices.Clone(slices.Compact(l.ids))
}

// writtenWords returns the distinct unstemmed words of texts, sorted by number.
func (l *docAnalyzer) writtenWords(texts ...[]*wordTerms) []uint32 {
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
