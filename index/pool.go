package index

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"

	"github.com/blevesearch/bleve/v2/document"
	blevesearch "github.com/blevesearch/bleve_index_api"
)

// poolName is bleve's one field. Its terms are the pooled terms of a document, whose
// frequencies are fixed point numbers, and besides them, apart by a byte that no
// word has, the document's slot in the store and the pin boxes that it is in.
const (
	poolName  = "pool"
	slotTerm  = "\x00"
	pinPrefix = "\x01"
	// pinBoxes is how many lists the documents are found in by exact names. A list
	// for each name would be a third of all lists.
	pinBoxes = 1024
)

// pinTerm is the term of the box that a key is in.
func pinTerm(key string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key)) // does not fail
	return pinPrefix + strconv.Itoa(int(sum.Sum32()%pinBoxes))
}

// pooled is an entry as bleve gets it: a document with the pooled terms and its key.
type pooled struct {
	entry *entry
	key   *document.TextField
	terms poolField
}

func newPooled(e *entry, maker *frequencies) *pooled {
	p := &pooled{entry: e, terms: poolField{entry: e, maker: maker}}
	for _, key := range pinKeys(e.doc) {
		p.terms.pins = append(p.terms.pins, pinTerm(key))
	}
	return p
}

func (p *pooled) ID() string                                       { return p.entry.key }
func (p *pooled) Size() int                                        { return len(p.entry.terms) * 8 }
func (p *pooled) VisitComposite(blevesearch.CompositeFieldVisitor) {}
func (p *pooled) HasComposite() bool                               { return false }
func (p *pooled) NumPlainTextBytes() uint64                        { return 0 }
func (p *pooled) StoredFieldsBytes() uint64                        { return uint64(len(p.entry.key)) }
func (p *pooled) Indexed() bool                                    { return true }

// AddIDField is called before the fields are visited.
func (p *pooled) AddIDField() {
	p.key = document.NewTextFieldCustom("_id", nil, []byte(p.entry.key), blevesearch.IndexField|blevesearch.StoreField, nil)
}

func (p *pooled) VisitFields(visit blevesearch.FieldVisitor) {
	visit(&p.terms)
	visit(p.key)
}

// poolField hands bleve terms and frequencies that are there already.
type poolField struct {
	entry *entry
	pins  []string
	maker *frequencies
}

func (*poolField) Name() string                              { return poolName }
func (*poolField) Value() []byte                             { return nil }
func (*poolField) ArrayPositions() []uint64                  { return nil }
func (*poolField) EncodedFieldType() byte                    { return 't' }
func (*poolField) Analyze()                                  {}
func (*poolField) Options() blevesearch.FieldIndexingOptions { return blevesearch.IndexField }
func (*poolField) AnalyzedLength() int                       { return 0 }
func (*poolField) NumPlainTextBytes() uint64                 { return 0 }

// AnalyzedTokenFrequencies is what bleve asks for twice, when it makes a segment,
// and reads before it asks for that of the next document.
func (p *poolField) AnalyzedTokenFrequencies() blevesearch.TokenFrequencies {
	return p.maker.of(p.entry, p.pins)
}

// frequencies makes bleve's maps of the entries of one batch. They share their
// memory: a map for each, of a hundred terms, would be most of what a build allocates.
type frequencies struct {
	texts []string
	maps  [maxMapBits]blevesearch.TokenFrequencies // by size: to go through a large one takes long
	all   []blevesearch.TokenFreq
}

// maxMapBits is enough for any number of terms.
const maxMapBits = 32

func (m *frequencies) of(e *entry, pins []string) blevesearch.TokenFrequencies {
	n := len(e.terms) + len(pins) + 1
	size := bits.Len(uint(n))
	terms := m.maps[size]
	if terms == nil {
		terms = make(blevesearch.TokenFrequencies, 1<<size)
		m.maps[size] = terms
	}
	clear(terms)
	m.all = slices.Grow(m.all[:0], n)[:n]
	left := m.all
	put := func(term string, freq int) {
		left[0].SetFrequency(freq)
		terms[term] = &left[0]
		left = left[1:]
	}
	for i, id := range e.terms {
		put(m.texts[id], int(e.freqs[i]))
	}
	put(slotTerm, int(e.slot)+1)
	for _, pin := range pins { // several may be one
		put(pin, 1)
	}
	return terms
}

// postings calls found for each document that has term, with its frequency.
func postings(ctx context.Context, reader blevesearch.IndexReader, term string, found func(number uint64, freq uint64)) error {
	list, err := reader.TermFieldReader(ctx, []byte(term), poolName, true, false, false)
	if err != nil {
		return fmt.Errorf("read postings: %w", err)
	}
	var doc blevesearch.TermFieldDoc
	for {
		next, err := list.Next(doc.Reset())
		if next == nil || err != nil {
			if err = cmp.Or(err, list.Close()); err != nil {
				return fmt.Errorf("read postings: %w", err)
			}
			return nil
		}
		found(next.ID.Value(), next.Freq)
	}
}
