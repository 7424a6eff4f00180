package index

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	blevesearch "github.com/blevesearch/bleve_index_api"
)

// store is the state that updates share: bleve with the postings of all documents,
// and the facts of each, so that an update costs only what has changed. It must not be
// used after an error. It is not safe for concurrent use; its snapshots are, and
// stay valid until they are retired.
type store struct {
	bleve bleve.Index
	inner blevesearch.Index
	*builtIn
	weigh   weights
	entries []*entry // sorted by id
	// segments mirrors the segments of bleve, one for each batch.
	segments   []*segment
	lastKey    int // number of entries passed to bleve so far, the last key
	slots      int
	freeSlots  []uint32 // unused slots
	table      *table
	tableSize  int               // size of the table after the last renumber
	cache      *diskCache        // nil disables the disk cache
	savedFacts map[digest]*facts // facts from disk that are not used yet; nil until load
	// analyzedDocs and recalled count the documents of the last update that were analyzed, or read from disk.
	analyzedDocs, cachedDocs int
	// terms and vocabulary: see snapshot.
	terms, vocabulary termCounts
}

// entry is one document in bleve.
type entry struct {
	doc     *Doc   // in the docs of the newest snapshot
	key     string // document id in bleve; a new one each time it is written
	slot    uint32 // unique number among the current entries
	digest  digest // set if the disk cache is enabled
	segment *segment
	*facts
}

// segment counts the documents that were written to it, and those not deleted since.
type segment struct{ all, live int }

func newStore(weigh weights, saved *diskCache) (*store, error) {
	known, err := readBuiltIn()
	if err != nil {
		return nil, err
	}
	st := &store{builtIn: known, weigh: weigh, table: newTable(), cache: saved}
	if st.bleve, err = bleve.NewUsing("", bleve.NewIndexMapping(), scorch.Name, scorch.Name,
		map[string]any{"forceSegmentType": segmentType, "forceSegmentVersion": segmentVersion}); err != nil {
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

// A change is written in up to maxParts parallel parts of at least minPart documents.
const (
	minPart  = 200
	maxParts = 4
	// maxSegments is the number of segments from which on absorb merges some.
	maxSegments = 8
)

// change is the work of an update. An entry may be in both gone and added.
type change struct {
	removed []string // keys
	added   []*entry
}

// update makes docs, which must be sorted by id, the content of the store and returns a snapshot of it.
func (st *store) update(docs []Doc) (*snapshot, error) {
	ch := st.diff(docs)
	if st.cachedDocs = 0; st.cache != nil && len(ch.added) > 0 {
		st.reuseFacts(ch.added)
	}
	st.analyze(ch.added)
	st.compact(&ch)
	if err := st.write(ch); err != nil {
		return nil, err
	}
	st.renumber()
	if st.cache != nil && len(ch.removed)+len(ch.added) > 0 {
		st.save()
	}
	return st.snapshot(docs)
}

// diff returns the difference of docs to the current entries, and replaces the entries.
func (st *store) diff(docs []Doc) change {
	var ch change
	next, old := make([]*entry, len(docs)), st.entries
	for i := range docs {
		d := &docs[i]
		for len(old) > 0 && compareDocs(old[0].doc, d) < 0 {
			st.remove(&ch, old[0])
			old = old[1:]
		}
		if len(old) > 0 && compareDocs(old[0].doc, d) == 0 {
			next[i], old = old[0], old[1:]
			if next[i].doc.equal(d) {
				next[i].doc = d // makes the next comparison fast: it is the same memory
				continue
			}
			st.remove(&ch, next[i])
		}
		next[i] = &entry{doc: d}
		ch.added = append(ch.added, next[i])
	}
	for _, e := range old {
		st.remove(&ch, e)
	}
	for _, e := range ch.added {
		e.slot = st.slot()
	}
	st.entries = next
	return ch
}

func (st *store) remove(ch *change, e *entry) {
	e.segment.live--
	ch.removed = append(ch.removed, e.key)
	st.freeSlots = append(st.freeSlots, e.slot)
	st.terms.drop(e.terms[:e.numSpellChecked])
	st.vocabulary.drop(e.words)
}

func (st *store) slot() uint32 {
	if n := len(st.freeSlots); n > 0 {
		slot := st.freeSlots[n-1]
		st.freeSlots = st.freeSlots[:n-1]
		return slot
	}
	st.slots++
	return uint32(st.slots - 1)
}

// compact adds the entries of small segments to the change, so that they are written
// to the new segment: of the smaller half once there are maxSegments, since a search
// reads every segment for every word, and of those that are mostly deleted.
func (st *store) compact(ch *change) {
	st.segments = slices.DeleteFunc(st.segments, func(seg *segment) bool { return seg.live == 0 })
	slices.SortStableFunc(st.segments, func(a, b *segment) int { return a.live - b.live })
	many, small := len(st.segments) >= maxSegments, map[*segment]bool{}
	for i, seg := range st.segments {
		if many && i < maxSegments/2 || 4*seg.live < seg.all {
			small[seg] = true
		}
	}
	if len(small) == 0 {
		return
	}
	for _, e := range st.entries {
		if small[e.segment] {
			ch.removed = append(ch.removed, e.key)
			ch.added = append(ch.added, e)
		}
	}
	st.segments = slices.DeleteFunc(st.segments, func(seg *segment) bool { return small[seg] })
}

// write applies a change to bleve. It splits a large change into batches of about the
// same size, up to one per core, each of which makes a segment.
func (st *store) write(ch change) error {
	if len(ch.removed)+len(ch.added) == 0 {
		return nil
	}
	for _, e := range ch.added {
		st.lastKey++
		e.key = strconv.Itoa(st.lastKey)
	}
	texts := st.table.list()
	parts := max(1, min(runtime.GOMAXPROCS(0), maxParts, len(ch.added)/minPart))
	errs := make([]error, parts)
	var work sync.WaitGroup
	for i := range parts {
		part := change{added: ch.added[i*len(ch.added)/parts : (i+1)*len(ch.added)/parts]}
		if i == 0 {
			part.removed = ch.removed
		}
		st.addSegment(part.added)
		work.Go(func() { errs[i] = st.writePart(part, texts) })
	}
	work.Wait()
	return errors.Join(errs...)
}

func (st *store) writePart(ch change, texts []string) error {
	ops, of := blevesearch.NewBatch(), &batch{ch.added, texts}
	for _, key := range ch.removed {
		ops.Delete(key)
	}
	for _, e := range ch.added {
		ops.Update(&pooledDoc{of, e.key})
	}
	if err := st.inner.Batch(ops); err != nil {
		return fmt.Errorf("index documents: %w", err)
	}
	return nil
}

func (st *store) addSegment(added []*entry) {
	if len(added) == 0 {
		return
	}
	seg := &segment{all: len(added), live: len(added)}
	for _, e := range added {
		e.segment = seg
	}
	st.segments = append(st.segments, seg)
}
