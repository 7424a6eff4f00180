package index

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	blevesearch "github.com/blevesearch/bleve_index_api"
	segments "github.com/blevesearch/scorch_segment_api/v2"
)

// postingsSegment is a segment for bleve that holds only postings, in memory. bleve's own
// segments are designed for files and take ten times as long to build.
type postingsSegment struct {
	noStats
	first int // the key of document 0; those of the others follow
	count int
	terms map[string][]posting
}

// posting is the frequency of a term in one document of the segment.
type posting struct{ number, freq uint32 }

// newPostingsSegment returns the segment for a batch.
func newPostingsSegment(p *batch) (*postingsSegment, error) {
	first, err := strconv.Atoi(p.entries[0].key)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	l := &postingsSegment{first: first, count: len(p.entries)}
	pins := make([][]int, len(p.entries))
	ends := make([]uint32, len(p.texts)+1+pinBuckets) // by term number (see text): at first the size of its list
	all := uint32(0)
	for i, e := range p.entries {
		pins[i] = pinBucketsOf(e.doc)
		p.forEachTerm(e, pins[i], func(id int, _ uint32) { ends[id]++ })
		all += uint32(len(e.terms) + 1 + len(pins[i]))
	}
	terms, end := 0, uint32(0)
	for id, size := range ends { // from here on, the end of its list so far
		ends[id] = end
		if end += size; size > 0 {
			terms++
		}
	}
	postings := make([]posting, all)
	for number, e := range p.entries {
		p.forEachTerm(e, pins[number], func(id int, freq uint32) {
			postings[ends[id]] = posting{uint32(number), freq}
			ends[id]++
		})
	}
	l.terms = make(map[string][]posting, terms)
	start := uint32(0)
	for id, end := range ends {
		if start < end {
			l.terms[p.termText(id)] = postings[start:end:end]
		}
		start = end
	}
	return l, nil
}

// pinBucketsOf returns the distinct pin buckets of a document.
func pinBucketsOf(d *Doc) []int {
	var boxes []int
	for _, key := range pinKeys(d) {
		boxes = append(boxes, pinBucket(key))
	}
	slices.Sort(boxes)
	return slices.Compact(boxes)
}

// forEachTerm calls put for every term of e, for its slot and for its pin buckets.
func (p *batch) forEachTerm(e *entry, pins []int, put func(id int, freq uint32)) {
	for i, id := range e.terms {
		put(int(id), uint32(e.freqs[i]))
	}
	put(len(p.texts), e.slot+1)
	for _, box := range pins {
		put(len(p.texts)+1+box, 1)
	}
}

// termText returns the term of a number: first those of the store's table, then the slot term, then the buckets.
func (p *batch) termText(id int) string {
	switch off := id - len(p.texts); {
	case off < 0:
		return p.texts[id]
	case off == 0:
		return slotTerm
	default:
		return bucketTerm(off - 1)
	}
}

// number returns the number of the document with key, -1 if there is none.
func (l *postingsSegment) number(key string) int {
	if n, err := strconv.Atoi(key); err == nil && n >= l.first && n < l.first+l.count {
		return n - l.first
	}
	return -1
}

func (l *postingsSegment) DocNumbers(keys []string) (*roaring.Bitmap, error) {
	found := roaring.New()
	for _, key := range keys {
		if n := l.number(key); n >= 0 {
			found.Add(uint32(n))
		}
	}
	return found, nil
}

func (l *postingsSegment) DocID(number uint64) ([]byte, error) {
	return strconv.AppendInt(nil, int64(l.first)+int64(number), 10), nil
}

func (l *postingsSegment) Dictionary(string) (segments.TermDictionary, error) { return l, nil }
func (l *postingsSegment) Count() uint64                                      { return uint64(l.count) }
func (l *postingsSegment) Cardinality() int                                   { return len(l.terms) }
func (l *postingsSegment) Fields() []string                                   { return []string{poolField} }
func (l *postingsSegment) AddRef()                                            {}
func (l *postingsSegment) DecRef() error                                      { return nil }
func (l *postingsSegment) Close() error                                       { return nil }

func (l *postingsSegment) VisitStoredFields(uint64, segments.StoredFieldValueVisitor) error {
	return nil
}

func (l *postingsSegment) Contains(term []byte) (bool, error) {
	return l.terms[string(term)] != nil, nil
}

func (l *postingsSegment) PostingsList(term []byte, except *roaring.Bitmap, _ segments.PostingsList) (segments.PostingsList, error) {
	return &postingsList{postings: l.terms[string(term)], except: except}, nil
}

// AutomatonIterator is unused: only bleve's own searches need it.
func (l *postingsSegment) AutomatonIterator(segments.Automaton, []byte, []byte) segments.DictionaryIterator {
	return noTerms{}
}

type noTerms struct{}

func (noTerms) Next() (*blevesearch.DictEntry, error) { return nil, nil }

// postingsList is the postings list of one term without the documents in except, and its iterator.
type postingsList struct {
	noStats
	postings []posting
	except   *roaring.Bitmap // nil: none
	at       posting
}

func (l *postingsList) Iterator(bool, bool, bool, segments.PostingsIterator) segments.PostingsIterator {
	return l
}

func (l *postingsList) Next() (segments.Posting, error) {
	for len(l.postings) > 0 {
		l.at, l.postings = l.postings[0], l.postings[1:]
		if l.except == nil || !l.except.Contains(l.at.number) {
			return l, nil
		}
	}
	return nil, nil
}

func (l *postingsList) Advance(number uint64) (segments.Posting, error) {
	at, _ := slices.BinarySearchFunc(l.postings, number, func(p posting, n uint64) int { return cmp.Compare(uint64(p.number), n) })
	l.postings = l.postings[at:]
	return l.Next()
}

// Count returns the number of remaining postings. bleve calls it before iterating.
func (l *postingsList) Count() uint64 {
	n := len(l.postings)
	if l.except == nil {
		return uint64(n)
	}
	for _, p := range l.postings {
		if l.except.Contains(p.number) {
			n--
		}
	}
	return uint64(n)
}

func (l *postingsList) Number() uint64                 { return uint64(l.at.number) }
func (l *postingsList) Frequency() uint64              { return uint64(l.at.freq) }
func (l *postingsList) Norm() float64                  { return 0 }
func (l *postingsList) Locations() []segments.Location { return nil }

// noStats implements bleve's byte counters with zeros.
type noStats struct{}

func (noStats) BytesRead() uint64     { return 0 }
func (noStats) ResetBytesRead(uint64) {}
func (noStats) BytesWritten() uint64  { return 0 }
func (noStats) Size() int             { return 0 }

// segmentPlugin is bleve's plugin for lists segments.
type segmentPlugin struct{}

const (
	segmentType    = "lists"
	segmentVersion = 1
)

// registerSegmentPlugin registers the plugin with bleve. Only an index that requests it by name
// uses it; the benchmarks' other indexes in the process do not.
func registerSegmentPlugin() { scorch.RegisterSegmentPlugin(segmentPlugin{}, false) }

func (segmentPlugin) Type() string    { return segmentType }
func (segmentPlugin) Version() uint32 { return segmentVersion }

func (p segmentPlugin) New(docs []blevesearch.Document) (segments.Segment, uint64, error) {
	return p.NewUsing(docs, nil)
}

// NewUsing returns a segment of the documents of one batch, which may come in any order.
func (segmentPlugin) NewUsing(docs []blevesearch.Document, _ map[string]any) (segments.Segment, uint64, error) {
	if p, ok := docs[0].(*pooledDoc); ok && len(docs) == len(p.entries) {
		l, err := newPostingsSegment(p.batch)
		return l, 0, err
	}
	return nil, 0, fmt.Errorf("index %T: %w", docs[0], errors.ErrUnsupported)
}

func (segmentPlugin) Open(string) (segments.Segment, error) { return nil, errors.ErrUnsupported }

func (segmentPlugin) OpenUsing(string, map[string]any) (segments.Segment, error) {
	return nil, errors.ErrUnsupported
}

func (segmentPlugin) Merge([]segments.Segment, []*roaring.Bitmap, string, chan struct{}, segments.StatsReporter) ([][]uint64, uint64, error) {
	return nil, 0, errors.ErrUnsupported
}

func (segmentPlugin) MergeUsing([]segments.Segment, []*roaring.Bitmap, string, chan struct{}, segments.StatsReporter, map[string]any) ([][]uint64, uint64, error) {
	return nil, 0, errors.ErrUnsupported
}
