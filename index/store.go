package index

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	blevesearch "github.com/blevesearch/bleve_index_api"
)

// store is what an update of the index leaves to the next: bleve with the postings
// of all documents, and what else is known of each, so that an update pays for what
// has changed. After an error it is of no more use. It is not safe for concurrent
// use; the snapshots that it makes are, and live until they are retired.
type store struct {
	bleve bleve.Index
	inner blevesearch.Index
	words *analyzers
	weigh weights
	// related maps a term to its synonyms.
	related map[string][]string
	phrases phraseTable
	entries []*entry // sorted by id
	// segments are what bleve keeps the documents in, one for each batch.
	segments []*segment
	made     int // entries so far that were given to bleve
	// terms and vocabulary: see snapshot.
	terms, vocabulary lexicon
}

// entry is one document as bleve has it.
type entry struct {
	doc     Doc
	key     string // bleve's name for it; a new one each time it is given to bleve
	segment *segment
	facts
}

// facts are what ranking needs of a document besides its postings.
type facts struct {
	lengths [fieldCount]int32 // in terms
	pins    []string
	// terms and words are counted in the lexicons of the store.
	terms, words []*lexeme
}

// segment counts the documents that were put into it, and those that still count.
type segment struct{ all, live int }

func newStore(weigh weights) (*store, error) {
	words, err := newAnalyzers()
	if err != nil {
		return nil, fmt.Errorf("make analyzers: %w", err)
	}
	st := &store{words: words, weigh: weigh, related: synonymTable(words.stem.stem), terms: newLexicon(), vocabulary: newLexicon()}
	if st.phrases, err = readPhrases(words, phraseFiles); err != nil {
		return nil, err
	}
	if st.bleve, err = bleve.NewUsing("", bleve.NewIndexMapping(), scorch.Name, scorch.Name, nil); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if st.inner, err = st.bleve.Advanced(); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	return st, nil
}

func (st *store) close() error {
	if err := st.bleve.Close(); err != nil {
		return fmt.Errorf("close index: %w", err)
	}
	return nil
}

// change is what an update has to do. An entry may be in gone and in added.
type change struct {
	gone  []string // keys
	added []*entry
}

// update makes docs, which are sorted by id, the content.
func (st *store) update(docs []Doc) (*snapshot, error) {
	ch := st.compare(docs)
	st.absorb(&ch)
	if err := st.write(ch); err != nil {
		return nil, err
	}
	return st.snapshot(docs)
}

// compare finds out which documents are new or other than they were.
func (st *store) compare(docs []Doc) change {
	var ch change
	next, old := make([]*entry, len(docs)), st.entries
	for i, d := range docs {
		for len(old) > 0 && compareDocs(old[0].doc, d) < 0 {
			st.drop(&ch, old[0])
			old = old[1:]
		}
		if len(old) > 0 && compareDocs(old[0].doc, d) == 0 {
			next[i], old = old[0], old[1:]
			if next[i].doc.same(d) {
				next[i].doc = d // another time, it is the same memory and quick to compare
				continue
			}
			st.drop(&ch, next[i])
		}
		next[i] = &entry{doc: d}
		ch.added = append(ch.added, next[i])
	}
	for _, e := range old {
		st.drop(&ch, e)
	}
	st.entries = next
	return ch
}

func (st *store) drop(ch *change, e *entry) {
	e.segment.live--
	ch.gone = append(ch.gone, e.key)
	st.terms.drop(e.terms)
	st.vocabulary.drop(e.words)
}

// absorb has small segments written again in one with what is new, as well as
// those half of which is gone. A search asks every segment for every word; this way there
// are as many as the logarithm of the number of documents, and a document is written as often.
func (st *store) absorb(ch *change) {
	st.segments = slices.DeleteFunc(st.segments, func(seg *segment) bool { return seg.live == 0 })
	slices.SortStableFunc(st.segments, func(a, b *segment) int { return a.live - b.live })
	total, small := len(ch.added), map[*segment]bool{}
	for _, seg := range st.segments {
		if seg.live <= total || 2*seg.live < seg.all {
			small[seg] = true
			total += seg.live
		}
	}
	if len(small) == 0 {
		return
	}
	for _, e := range st.entries {
		if small[e.segment] {
			ch.gone = append(ch.gone, e.key)
			ch.added = append(ch.added, e)
		}
	}
	st.segments = slices.DeleteFunc(st.segments, func(seg *segment) bool { return small[seg] })
}

// write gives a change to bleve as one batch, which makes one segment.
func (st *store) write(ch change) error {
	if len(ch.gone)+len(ch.added) == 0 {
		return nil
	}
	batch := blevesearch.NewBatch()
	for _, key := range ch.gone {
		batch.Delete(key)
	}
	docs := make([]*document.Document, len(ch.added))
	for i, e := range ch.added {
		st.made++
		e.key = strconv.Itoa(st.made)
		docs[i] = st.words.document(e.key, e.doc)
		batch.Update(docs[i])
	}
	if err := st.inner.Batch(batch); err != nil {
		return fmt.Errorf("index documents: %w", err)
	}
	seg := &segment{all: len(docs), live: len(docs)}
	for i, e := range ch.added {
		if e.segment == nil {
			e.facts = st.learn(e.doc, docs[i])
		}
		e.segment = seg
	}
	if seg.live > 0 {
		st.segments = append(st.segments, seg)
	}
	st.words.stem.known.Clear() // documents that come and go could name any number of words
	return nil
}

// learn takes from an analyzed document what ranking needs besides the postings.
func (st *store) learn(d Doc, made *document.Document) facts {
	know := facts{pins: pinKeys(d)}
	terms, words := map[string]bool{}, map[string]bool{}
	for _, f := range made.Fields {
		part, ok := f.(*textPart) // else it is the key
		if !ok {
			continue
		}
		know.lengths[part.field] = int32(part.AnalyzedLength())
		if !part.field.likely() {
			continue
		}
		for term := range part.AnalyzedTokenFrequencies() {
			terms[term] = true
		}
	}
	for _, w := range st.words.list(d.ID.Upstream + " " + d.ID.Name + " " + d.Title) {
		if len(w.text) >= minFuzzy {
			words[w.text] = true
		}
	}
	know.terms, know.words = st.terms.add(terms), st.vocabulary.add(words)
	return know
}

// lexicon is a set of words, each with the number of documents that have it.
type lexicon struct {
	known  map[string]*lexeme
	sorted []string
	stale  bool // sorted is
}

type lexeme struct {
	text string
	docs int
}

func newLexicon() lexicon { return lexicon{known: map[string]*lexeme{}} }

// add counts the words of one more document.
func (l *lexicon) add(words map[string]bool) []*lexeme {
	all := make([]*lexeme, 0, len(words))
	for text := range words {
		w := l.known[text]
		if w == nil {
			w = &lexeme{text: text}
			l.known[text], l.stale = w, true
		}
		w.docs++
		all = append(all, w)
	}
	return all
}

// drop takes back what add returned.
func (l *lexicon) drop(words []*lexeme) {
	for _, w := range words {
		if w.docs--; w.docs == 0 {
			delete(l.known, w.text)
			l.stale = true
		}
	}
}

// list returns the words in their order. The result does not change.
func (l *lexicon) list() []string {
	if l.stale {
		l.sorted, l.stale = slices.Sorted(maps.Keys(l.known)), false
	}
	return l.sorted
}
