package index

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
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
	fieldCount
)

func (f field) String() string {
	return [...]string{"name", "title", "upstream", "lead", "description", "param", "paramtext"}[f]
}

// prose reports whether the field holds sentences, not names.
func (f field) prose() bool {
	return f == fieldLead || f == fieldDescription || f == fieldParamText || f == fieldUpstream
}

// snapshot is one catalog, indexed. It does not change; a catalog that changed gets a new one.
type snapshot struct {
	bleve  bleve.Index
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

func buildSnapshot(docs []Doc, weigh weights) (*snapshot, error) {
	words, err := newAnalyzers()
	if err != nil {
		return nil, fmt.Errorf("make analyzers: %w", err)
	}
	s := &snapshot{words: words, weigh: weigh, docs: sortedDocs(docs)}
	s.scratch.New = func() any { return newScratch(len(s.docs)) }
	s.related = synonymTable(words.stem.stem)
	s.groupUpstreams()
	s.bleve, err = bleve.NewUsing("", bleve.NewIndexMapping(), scorch.Name, scorch.Name, nil)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if err := s.fill(); err != nil {
		_ = s.bleve.Close()
		return nil, err
	}
	if err := s.collectTerms(); err != nil {
		return nil, errors.Join(err, s.retire())
	}
	s.collectNames()
	return s, nil
}

// sortedDocs returns the documents by id; of several with one id the first stays.
func sortedDocs(docs []Doc) []Doc {
	sorted := slices.Clone(docs)
	slices.SortStableFunc(sorted, func(a, b Doc) int {
		return cmp.Or(cmp.Compare(a.ID.Upstream, b.ID.Upstream), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return slices.CompactFunc(sorted, func(a, b Doc) bool { return a.ID == b.ID })
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

// fill puts all documents into bleve as one batch, which makes one segment, and
// takes from it what ranking needs besides the postings.
func (s *snapshot) fill() error {
	inner, err := s.bleve.Advanced()
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	batch := blevesearch.NewBatch()
	made := make([]*document.Document, len(s.docs))
	for ord := range s.docs {
		made[ord] = s.document(ord)
		batch.Update(made[ord])
	}
	if err := inner.Batch(batch); err != nil {
		return fmt.Errorf("index documents: %w", err)
	}
	s.measure(made)
	if s.reader, err = inner.Reader(); err != nil {
		return fmt.Errorf("open reader: %w", err)
	}
	return s.numberDocs()
}

func (s *snapshot) document(ord int) *document.Document {
	doc := document.NewDocument(strconv.Itoa(ord))
	for f, text := range s.docs[ord].texts() {
		if text == "" {
			continue
		}
		analyzer := s.words.name
		if field(f).prose() {
			analyzer = s.words.prose
		}
		doc.AddField(textField(field(f), text, analyzer))
	}
	return doc
}

func textField(f field, text string, a analysis.Analyzer) document.Field {
	return document.NewTextFieldCustom(f.String(), nil, []byte(text), blevesearch.IndexField, a)
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
	t[fieldParam], t[fieldParamText] = names.String(), descriptions.String()
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
func (s *snapshot) measure(made []*document.Document) {
	lengths := [fieldCount][]int{}
	for f := range lengths {
		lengths[f] = make([]int, len(made))
	}
	for ord, doc := range made {
		for _, df := range doc.Fields {
			for f := range fieldCount {
				if df.Name() == f.String() {
					lengths[f][ord] = df.AnalyzedLength()
				}
			}
		}
	}
	for f := range fieldCount {
		s.factor[f] = s.weigh.factors(f, lengths[f])
	}
}

func (s *snapshot) numberDocs() error {
	s.ordOf = make([]int32, len(s.docs))
	all, err := s.reader.DocIDReaderAll()
	if err != nil {
		return fmt.Errorf("read document numbers: %w", err)
	}
	for {
		id, err := all.Next()
		if id == nil || err != nil {
			return err
		}
		external, err := s.reader.ExternalID(id)
		if err != nil {
			return fmt.Errorf("read document number: %w", err)
		}
		ord, err := strconv.Atoi(external)
		if err != nil || id.Value() >= uint64(len(s.ordOf)) {
			return fmt.Errorf("read document number %d: unexpected id %q", id.Value(), external)
		}
		s.ordOf[id.Value()] = int32(ord)
	}
}

// collectTerms gathers the terms that may stand in for one that no document has.
func (s *snapshot) collectTerms() error {
	known := map[string]bool{}
	for _, f := range []field{fieldName, fieldTitle, fieldUpstream, fieldLead, fieldParam} {
		dict, err := s.reader.FieldDict(f.String())
		if err != nil {
			return fmt.Errorf("read terms: %w", err)
		}
		entry, err := dict.Next()
		for ; entry != nil && err == nil; entry, err = dict.Next() {
			known[entry.Term] = true
		}
		if err := cmp.Or(err, dict.Close()); err != nil {
			return fmt.Errorf("read terms: %w", err)
		}
	}
	s.terms = slices.Sorted(maps.Keys(known))
	return nil
}

// collectNames gathers what exact names are pinned by and what words can be suggested.
func (s *snapshot) collectNames() {
	s.pins = map[string][]int32{}
	known := map[string]bool{}
	for ord, d := range s.docs {
		for _, key := range pinKeys(d) {
			s.pins[key] = append(s.pins[key], int32(ord))
		}
		for _, w := range s.words.list(d.ID.Upstream + " " + d.ID.Name + " " + d.Title) {
			known[w.text] = true
		}
	}
	for w := range known {
		if len(w) >= minFuzzy {
			s.vocabulary = append(s.vocabulary, w)
		}
	}
	slices.Sort(s.vocabulary)
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
	readerErr := s.reader.Close()
	if err := s.bleve.Close(); err != nil {
		return fmt.Errorf("close index: %w", err)
	}
	return readerErr
}
