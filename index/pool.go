package index

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strconv"

	blevesearch "github.com/blevesearch/bleve_index_api"
)

// poolField is the only field in bleve. Its terms are the pooled terms of a document,
// with fixed-point weights as frequencies, and, prefixed by a byte that no word
// has, the document's slot in the store and its pin buckets.
const (
	poolField = "pool"
	slotTerm  = "\x00"
	pinPrefix = "\x01"
	// pinBuckets is the number of hash buckets for exact names. A postings list for each
	// name would be a third of all lists.
	pinBuckets = 1024
)

// pinBucket returns the bucket of a key.
func pinBucket(key string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key)) // does not fail
	return int(sum.Sum32() % pinBuckets)
}

func bucketTerm(box int) string { return pinPrefix + strconv.Itoa(box) }

// batch is the part of a change that becomes one segment. The keys of its entries are consecutive.
type batch struct {
	entries []*entry
	texts   []string
}

// pooledDoc is an entry as a bleve document. It has no fields: segmentPlugin reads the batch itself.
type pooledDoc struct {
	*batch
	key string
}

func (p *pooledDoc) ID() string                                       { return p.key }
func (p *pooledDoc) VisitFields(blevesearch.FieldVisitor)             {}
func (p *pooledDoc) VisitComposite(blevesearch.CompositeFieldVisitor) {}
func (p *pooledDoc) AddIDField()                                      {}
func (p *pooledDoc) HasComposite() bool                               { return false }
func (p *pooledDoc) Indexed() bool                                    { return true }
func (p *pooledDoc) Size() int                                        { return 0 }
func (p *pooledDoc) NumPlainTextBytes() uint64                        { return 0 }
func (p *pooledDoc) StoredFieldsBytes() uint64                        { return 0 }

// forEachPosting calls found for each document that has term, with its frequency.
func forEachPosting(ctx context.Context, reader blevesearch.IndexReader, term string, found func(number uint64, freq uint64)) error {
	list, err := reader.TermFieldReader(ctx, []byte(term), poolField, true, false, false)
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
