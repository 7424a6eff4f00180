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

// store is what an update of the index leaves to the next: bleve with the postings
// of all documents, and what else is known of each, so that an update pays for what
// has changed. After an error it is of no more use. It is not safe for concurrent
// use; the snapshots that it makes are, and live until they are retired.
type store struct {
	bleve bleve.Index
	inner blevesearch.Index
	*builtIn
	weigh   weights
	entries []*entry // sorted by id
	// segments are what bleve keeps the documents in, one for each batch.
	segments []*segment
	made     int // entries so far that were given to bleve
	slots    int
	free     []uint32 // slots
	table    *table
	tableWas int               // how large the table was when it was last made anew
	saved    *saved            // nil keeps nothing
	known    map[digest]*facts // what was saved and may be asked for; nil until it is read
	// counts of the last update: documents that were analyzed, and that were known.
	learned, recalled int
	// terms and vocabulary: see snapshot.
	terms, vocabulary tally
}

// entry is one document as bleve has it.
type entry struct {
	doc     *Doc   // among those of the newest snapshot
	key     string // bleve's name for it; a new one each time it is given to bleve
	slot    uint32 // its number among the entries that there are, for as long as it is one
	digest  digest // if there are snapshots on disk
	segment *segment
	*facts
}

// segment counts the documents that were put into it, and those that still count.
type segment struct{ all, live int }

func newStore(weigh weights, saved *saved) (*store, error) {
	known, err := readBuiltIn()
	if err != nil {
		return nil, err
	}
	st := &store{builtIn: known, weigh: weigh, table: newTable(), saved: saved}
	if st.bleve, err = bleve.NewUsing("", bleve.NewIndexMapping(), scorch.Name, scorch.Name,
		map[string]any{"forceSegmentType": listsType, "forceSegmentVersion": listsVersion}); err != nil {
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

// A batch of at least minPart documents for each core, but no more than maxParts, is
// written as several.
const (
	minPart  = 200
	maxParts = 4
	// maxSegments is how many segments lead to fewer.
	maxSegments = 8
)

// change is what an update has to do. An entry may be in gone and in added.
type change struct {
	gone  []string // keys
	added []*entry
}

// update makes docs, which are sorted by id, the content.
func (st *store) update(docs []Doc) (*snapshot, error) {
	ch := st.compare(docs)
	if st.recalled = 0; st.saved != nil && len(ch.added) > 0 {
		st.recall(ch.added)
	}
	st.learn(ch.added)
	st.absorb(&ch)
	if err := st.write(ch); err != nil {
		return nil, err
	}
	st.renumber()
	if st.saved != nil && len(ch.gone)+len(ch.added) > 0 {
		st.save()
	}
	return st.snapshot(docs)
}

// compare finds out which documents are new or other than they were.
func (st *store) compare(docs []Doc) change {
	var ch change
	next, old := make([]*entry, len(docs)), st.entries
	for i := range docs {
		d := &docs[i]
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
	for _, e := range ch.added {
		e.slot = st.slot()
	}
	st.entries = next
	return ch
}

func (st *store) drop(ch *change, e *entry) {
	e.segment.live--
	ch.gone = append(ch.gone, e.key)
	st.free = append(st.free, e.slot)
	st.terms.drop(e.terms[:e.likely])
	st.vocabulary.drop(e.words)
}

func (st *store) slot() uint32 {
	if n := len(st.free); n > 0 {
		slot := st.free[n-1]
		st.free = st.free[:n-1]
		return slot
	}
	st.slots++
	return uint32(st.slots - 1)
}

// absorb has the smaller half of the segments written again in one with what is
// new, once there are many: a search asks every segment for every word. It does the
// same with those of which little is left.
func (st *store) absorb(ch *change) {
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
			ch.gone = append(ch.gone, e.key)
			ch.added = append(ch.added, e)
		}
	}
	st.segments = slices.DeleteFunc(st.segments, func(seg *segment) bool { return small[seg] })
}

// write gives a change to bleve: batches of about the same size, one for each
// core, if it is large, each of which makes a segment.
func (st *store) write(ch change) error {
	if len(ch.gone)+len(ch.added) == 0 {
		return nil
	}
	for _, e := range ch.added {
		st.made++
		e.key = strconv.Itoa(st.made)
	}
	texts := st.table.list()
	parts := max(1, min(runtime.GOMAXPROCS(0), maxParts, len(ch.added)/minPart))
	errs := make([]error, parts)
	var work sync.WaitGroup
	for i := range parts {
		part := change{added: ch.added[i*len(ch.added)/parts : (i+1)*len(ch.added)/parts]}
		if i == 0 {
			part.gone = ch.gone
		}
		st.addSegment(part.added)
		work.Go(func() { errs[i] = st.writePart(part, texts) })
	}
	work.Wait()
	return errors.Join(errs...)
}

func (st *store) writePart(ch change, texts []string) error {
	ops, of := blevesearch.NewBatch(), &batch{ch.added, texts}
	for _, key := range ch.gone {
		ops.Delete(key)
	}
	for _, e := range ch.added {
		ops.Update(&pooled{of, e.key})
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
