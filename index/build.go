package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"

	blevesearch "github.com/blevesearch/bleve_index_api"

	"sallyport/index/wordvec"
)

// field is a part of a document that has a weight of its own.
type field int

const (
	fieldName field = iota
	fieldTitle
	fieldUpstream
	fieldLead // the first sentence of the description
	fieldDescription
	fieldParam
	fieldParamText
	fieldValue  // allowed values of parameters
	fieldResult // names in results
	fieldCount
)

// prose reports whether the field holds sentences, not names.
func (f field) prose() bool {
	return f == fieldLead || f == fieldDescription || f == fieldParamText || f == fieldUpstream
}

// spellChecked reports whether the words of the field are candidates for correcting a misspelt query word.
func (f field) spellChecked() bool {
	return f != fieldDescription && f != fieldParamText && f != fieldValue && f != fieldResult
}

// snapshot is the immutable index of one catalog. A changed catalog gets a new snapshot.
type snapshot struct {
	reader    blevesearch.IndexReader
	analyzers *analyzers
	weigh     weights
	// docs is sorted by id. Other fields refer to a document by its position in docs ("ord").
	docs []Doc
	// ordOf maps bleve's document numbers to ords. bleve assigns numbers in the order in which its workers finish.
	ordOf     []int32
	facts     []*facts // by ord
	upstreams []upstream
	// upstreamOf maps ord to upstream.
	upstreamOf []int32
	// texts maps the term numbers of facts to terms.
	texts []string
	// vocabulary holds the unstemmed words of names, terms the indexed terms of the
	// spell-checked fields; both are sorted.
	vocabulary, terms []string
	// related maps a term to its synonyms.
	related map[string][]string
	phrases phraseTable
	// vectors holds the embeddings of the documents, by ord.
	vectors []wordvec.Vector
	scratch sync.Pool

	// Searches hold use for reading, retire holds it for writing.
	use     sync.RWMutex
	retired bool
}

// upstream is the range of the documents of one upstream.
type upstream struct {
	id          string
	first, last int // docs[first:last]
}

// snapshot returns a snapshot of docs, which must be the current content of the store.
func (st *store) snapshot(docs []Doc) (*snapshot, error) {
	texts := st.table.list()
	s := &snapshot{analyzers: st.analyzers, weigh: st.weigh, related: st.related, phrases: st.phrases, docs: docs, vectors: make([]wordvec.Vector, len(docs)), facts: make([]*facts, len(docs)),
		texts: texts, terms: st.terms.list(texts), vocabulary: st.vocabulary.list(texts)}
	s.scratch.New = func() any { return newScratch(len(s.docs)) }
	for ord, e := range st.entries {
		s.facts[ord], s.vectors[ord] = e.facts, e.vector
	}
	s.groupUpstreams()
	var err error
	if s.reader, err = st.inner.Reader(); err != nil {
		return nil, fmt.Errorf("open reader: %w", err)
	}
	if err := s.numberDocs(st.entries, st.slots); err != nil {
		return nil, errors.Join(err, s.retire())
	}
	return s, nil
}

// sortedDocs returns the documents sorted by id. Of several with the same id it keeps the first.
func sortedDocs(docs []Doc) []Doc {
	byID := func(a, b Doc) int { return compareDocs(&a, &b) }
	sorted := slices.Clone(docs)
	if !slices.IsSortedFunc(sorted, byID) {
		slices.SortStableFunc(sorted, byID)
	}
	return slices.CompactFunc(sorted, func(a, b Doc) bool { return compareDocs(&a, &b) == 0 })
}

func compareDocs(a, b *Doc) int {
	return cmp.Or(cmp.Compare(a.ID.Upstream, b.ID.Upstream), cmp.Compare(a.ID.Name, b.ID.Name), cmp.Compare(a.Kind, b.Kind))
}

func (s *snapshot) groupUpstreams() {
	s.upstreamOf = make([]int32, len(s.docs))
	for ord, d := range s.docs {
		if n := len(s.upstreams); n == 0 || s.upstreams[n-1].id != d.ID.Upstream {
			s.upstreams = append(s.upstreams, upstream{id: d.ID.Upstream, first: ord})
		}
		last := len(s.upstreams) - 1
		s.upstreams[last].last = ord + 1
		s.upstreamOf[ord] = int32(last)
	}
}

func (d Doc) wire() string { return cmp.Or(d.Wire, d.ID.Name) }

// texts returns the document's texts of one field.
func (d Doc) texts(f field) iter.Seq[string] {
	switch f {
	case fieldName:
		return only(d.wire())
	case fieldTitle:
		return only(d.Title)
	case fieldUpstream:
		return only(d.ID.Upstream, d.Upstream)
	case fieldLead:
		return only(first(cutLead(d.Description)))
	case fieldDescription:
		return only(second(cutLead(d.Description)))
	case fieldValue:
		return only(d.Values)
	case fieldResult:
		return only(d.Results)
	}
	return func(yield func(string) bool) {
		for _, p := range d.Params {
			text := p.Name
			if f == fieldParamText {
				text = p.Description
			}
			if !yield(text) {
				return
			}
		}
	}
}

func only(texts ...string) iter.Seq[string] { return slices.Values(texts) }
func first(a, _ string) string              { return a }
func second(_, b string) string             { return b }

// cutLead cuts a description after its first sentence or line, whichever ends first.
func cutLead(text string) (lead, rest string) {
	text = strings.TrimSpace(text)
	for i, r := range text {
		switch {
		case i < 8:
		case r == '\n', r == '。', r == '！', r == '？':
			return text[:i], text[i:]
		case (r == '.' || r == '!' || r == '?') && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n') && text[i-2] != '.': // not "e.g."
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// numberDocs fills ordOf with bleve's number of each document.
func (s *snapshot) numberDocs(entries []*entry, slots int) error {
	ords := make([]int32, slots)
	for ord, e := range entries {
		ords[e.slot] = int32(ord)
	}
	return forEachPosting(context.Background(), s.reader, slotTerm, func(number, freq uint64) {
		for uint64(len(s.ordOf)) <= number { // skip the numbers of deleted documents
			s.ordOf = append(s.ordOf, 0)
		}
		s.ordOf[number] = ords[freq-1]
	})
}

// pinKeys returns the distinct keys that pin a document to the top.
func pinKeys(d *Doc) []string {
	keys := append(idKeys(d), nameKey(d.ID.Name), nameKey(d.wire()))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// idKeys returns the keys that include the upstream, which no other upstream can claim.
func idKeys(d *Doc) []string {
	up, name, wire := nameKey(d.ID.Upstream), nameKey(d.ID.Name), nameKey(d.wire())
	return []string{up + "." + name, up + "." + wire, up + name, up + wire}
}

// nameKey normalizes a name: it lower-cases letters and drops separators.
func nameKey(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. /:", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// retire releases the snapshot once no search uses it.
func (s *snapshot) retire() error {
	s.use.Lock()
	defer s.use.Unlock()
	if s.retired {
		return nil
	}
	s.retired = true
	return s.reader.Close()
}
