package index

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
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

// poolField hands bleve terms and frequencies that are there already.
type poolField struct {
	*document.TextField
	freqs blevesearch.TokenFrequencies
}

func (p *poolField) Analyze()                                               {}
func (p *poolField) AnalyzedTokenFrequencies() blevesearch.TokenFrequencies { return p.freqs }

// pooled is what bleve gets of an entry.
func (e *entry) pooled(texts []string) *document.Document {
	pins := pinKeys(*e.doc)
	n := len(e.terms) + len(pins) + 1
	freqs, all := make(blevesearch.TokenFrequencies, n), make([]blevesearch.TokenFreq, n)
	put := func(term string, freq int) { // of pins, several may be one
		all[0].SetFrequency(freq)
		freqs[term] = &all[0]
		all = all[1:]
	}
	for i, id := range e.terms {
		put(texts[id], int(e.freqs[i]))
	}
	put(slotTerm, int(e.slot)+1)
	for _, key := range pins {
		put(pinTerm(key), 1)
	}
	doc := document.NewDocument(e.key)
	doc.AddField(&poolField{document.NewTextFieldCustom(poolName, nil, nil, blevesearch.IndexField, nil), freqs})
	return doc
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
