package index

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strconv"

	blevesearch "github.com/blevesearch/bleve_index_api"
)

// poolName is the only field in bleve. Its terms are the pooled terms of a document,
// with fixed-point weights as frequencies, and, prefixed by a byte that no word
// has, the document's slot in the store and its pin buckets.
const (
	poolName  = "pool"
	slotTerm  = "\x00"
	pinPrefix = "\x01"
	// pinBoxes is the number of hash buckets for exact names. A postings list for each
	// name would be a third of all lists.
	pinBoxes = 1024
)

// pinBox returns the bucket of a key.
func pinBox(key string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key)) // does not fail
	return int(sum.Sum32() % pinBoxes)
}

func boxTerm(box int) string { return pinPrefix + strconv.Itoa(box) }

// batch is the part of a change that becomes one segment. The keys of its entries are consecutive.
type batch struct {
	entries []*entry
	texts   []string
}

// pooled is an entry as a bleve document. It has no fields: listsPlugin reads the batch itself.
type pooled struct {
	*batch
	key string
}

func (p *pooled) ID() string                                       { return p.key }
func (p *pooled) VisitFields(blevesearch.FieldVisitor)             {}
func (p *pooled) VisitComposite(blevesearch.CompositeFieldVisitor) {}
func (p *pooled) AddIDField()                                      {}
func (p *pooled) HasComposite() bool                               { return false }
func (p *pooled) Indexed() bool                                    { return true }
func (p *pooled) Size() int                                        { return 0 }
func (p *pooled) NumPlainTextBytes() uint64                        { return 0 }
func (p *pooled) StoredFieldsBytes() uint64                        { return 0 }

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
