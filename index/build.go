package index

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	blevesearch "github.com/blevesearch/bleve_index_api"
)

// field is one of the texts of a document that are weighed apart.
type field int

const (
	fieldName field = iota
	fieldTitle
	fieldUpstream
	fieldLead // the first sentence of the description
	fieldDescription
	fieldParam
	fieldParamText
	fieldResult // names of what comes back
	fieldCount
)

func (f field) String() string {
	return [...]string{"name", "title", "upstream", "lead", "description", "param", "paramtext", "result"}[f]
}

// prose reports whether the field holds sentences, not names.
func (f field) prose() bool {
	return f == fieldLead || f == fieldDescription || f == fieldParamText || f == fieldUpstream
}

// likely reports whether a word that is misspelt in a query may stand for one of the field.
func (f field) likely() bool { return f != fieldDescription && f != fieldParamText && f != fieldResult }

// snapshot is one catalog, indexed. It does not change; a catalog that changed gets a new one.
type snapshot struct {
	reader blevesearch.IndexReader
	words  *analyzers
	weigh  weights
	// docs are sorted by id; a document is named by its place here ("ord").
	docs []Doc
	// ordOf maps bleve's document numbers to ords: bleve numbers them as its workers finish.
	ordOf []int32
	// factor is what one occurrence of a term in a field of a document counts: [field][ord].
	factor    [fieldCount][]float32
	upstreams []upstream
	// upstreamOf maps ord to upstream.
	upstreamOf []int32
	pins       map[string][]int32
	// vocabulary are the words of names as they are written, terms what they and
	// the other short fields became in the index; both sorted.
	vocabulary, terms []string
	// related maps a term to its synonyms.
	related map[string][]string
	phrases phraseTable
	scratch sync.Pool

	// use is held for reading by searches, for writing by retire.
	use     sync.RWMutex
	retired bool
}

// upstream is a run of docs.
type upstream struct {
	id          string
	first, last int // docs[first:last]
}

// snapshot makes a snapshot of docs, which the store has.
func (st *store) snapshot(docs []Doc) (*snapshot, error) {
	s := &snapshot{words: st.words, weigh: st.weigh, related: st.related, phrases: st.phrases, docs: docs, terms: st.terms.list(), vocabulary: st.vocabulary.list()}
	s.scratch.New = func() any { return newScratch(len(s.docs)) }
	s.groupUpstreams()
	s.measure(st.entries)
	s.collectPins(st.entries)
	var err error
	if s.reader, err = st.inner.Reader(); err != nil {
		return nil, fmt.Errorf("open reader: %w", err)
	}
	if err := s.numberDocs(st.entries); err != nil {
		return nil, errors.Join(err, s.retire())
	}
	return s, nil
}

// sortedDocs returns the documents by id; of several with one id the first stays.
func sortedDocs(docs []Doc) []Doc {
	sorted := slices.Clone(docs)
	slices.SortStableFunc(sorted, compareDocs)
	return slices.CompactFunc(sorted, func(a, b Doc) bool { return compareDocs(a, b) == 0 })
}

func compareDocs(a, b Doc) int {
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

// textPart is a text of a document, and the field that it is of.
type textPart struct {
	*document.TextField
	field field
}

// document is what bleve gets of d.
func (a *analyzers) document(key string, d Doc) *document.Document {
	doc := document.NewDocument(key)
	for i, text := range d.texts() {
		if text == "" {
			continue
		}
		f, analyzer := field(i), analysis.Analyzer(a.name)
		if f.prose() {
			analyzer = a.prose
		}
		doc.AddField(&textPart{document.NewTextFieldCustom(f.String(), nil, []byte(text), blevesearch.IndexField, analyzer), f})
	}
	return doc
}

func (d Doc) wire() string { return cmp.Or(d.Wire, d.ID.Name) }

// texts returns the document's text for each field.
func (d Doc) texts() [fieldCount]string {
	var t [fieldCount]string
	t[fieldName] = d.wire()
	t[fieldTitle] = d.Title
	t[fieldUpstream] = d.ID.Upstream + " " + d.Upstream
	t[fieldLead], t[fieldDescription] = cutLead(d.Description)
	var names, descriptions strings.Builder
	for _, p := range d.Params {
		names.WriteString(p.Name + " ")
		descriptions.WriteString(p.Description + "\n")
	}
	t[fieldParam], t[fieldParamText], t[fieldResult] = names.String(), descriptions.String(), d.Results
	return t
}

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

// measure computes BM25F's per-document factors from the lengths that analysis
// found: long fields count less per word, each field by its own weight.
func (s *snapshot) measure(entries []*entry) {
	lengths := make([]int32, len(entries))
	for f := range fieldCount {
		for ord, e := range entries {
			lengths[ord] = e.lengths[f]
		}
		s.factor[f] = s.weigh.factors(f, lengths)
	}
}

// numberDocs finds out bleve's number of each document.
func (s *snapshot) numberDocs(entries []*entry) error {
	ords := make(map[string]int32, len(entries))
	for ord, e := range entries {
		ords[e.key] = int32(ord)
	}
	all, err := s.reader.DocIDReaderAll()
	if err != nil {
		return fmt.Errorf("read document numbers: %w", err)
	}
	for {
		id, err := all.Next()
		if id == nil || err != nil {
			return cmp.Or(err, all.Close())
		}
		key, err := s.reader.ExternalID(id)
		if err != nil {
			return fmt.Errorf("read document number: %w", err)
		}
		ord, ok := ords[key]
		if !ok {
			return fmt.Errorf("read document number %d: unexpected key %q", id.Value(), key)
		}
		for uint64(len(s.ordOf)) <= id.Value() { // numbers of documents that are gone are left out
			s.ordOf = append(s.ordOf, 0)
		}
		s.ordOf[id.Value()] = ord
	}
}

// collectPins gathers the keys of exact names.
func (s *snapshot) collectPins(entries []*entry) {
	s.pins = make(map[string][]int32, 2*len(entries))
	for ord, e := range entries {
		for _, key := range e.pins {
			s.pins[key] = append(s.pins[key], int32(ord))
		}
	}
}

// pinKeys returns the keys under which a document is pinned to the top, each once.
func pinKeys(d Doc) []string {
	keys := []string{nameKey(d.ID.Name), nameKey(d.ID.Upstream) + "." + nameKey(d.ID.Name)}
	if d.Wire != "" {
		keys = append(keys, nameKey(d.Wire), nameKey(d.ID.Upstream)+"."+nameKey(d.Wire))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// nameKey folds away what people write differently in one name: case and separators.
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
