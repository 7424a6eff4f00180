package index

import (
	"cmp"
	"slices"
	"strings"

	blevesearch "github.com/blevesearch/bleve_index_api"

	"sallyport/internal/nearest"
)

const (
	// minPrefix and minFuzzy are the shortest words, in bytes, for which a longer
	// or a similar word is looked for.
	minPrefix = 3
	minFuzzy  = 4
	// maxNear is how many terms stand in for one that no document has.
	maxNear = 4
	// maxSuggest bounds the suggestions of a search.
	maxSuggest = 5
	// maxUnmatched bounds for how many words likes are looked up.
	maxUnmatched = 8
)

// near returns terms of the index that w could be a piece or a misspelling of,
// the nearest first, each worth less the farther it is.
func (r *search) near(w queryWord) ([]alternative, error) {
	if !w.plain || len(r.unmatched) >= maxUnmatched {
		return nil, nil
	}
	if halves := r.halves(w.text); halves != nil {
		return halves, nil
	}
	found := map[string]float64{}
	for _, f := range []field{fieldName, fieldTitle, fieldUpstream, fieldLead, fieldParam} {
		if err := r.nearInField(w.stem, f, found); err != nil {
			return nil, err
		}
	}
	terms := make([]alternative, 0, len(found))
	for term, weight := range found {
		terms = append(terms, alternative{term, weight})
	}
	slices.SortFunc(terms, func(a, b alternative) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.term, b.term))
	})
	return terms[:min(len(terms), maxNear)], nil
}

func (r *search) nearInField(term string, f field, found map[string]float64) error {
	if len(term) >= minPrefix {
		dict, err := r.reader.FieldDictPrefix(f.String(), []byte(term))
		if err != nil {
			return err
		}
		if err := collect(dict, found, func(known string) float64 {
			return float64(len(term)) / float64(len(known))
		}); err != nil {
			return err
		}
	}
	reader, ok := r.reader.(blevesearch.IndexReaderFuzzy)
	if !ok || len(term) < minFuzzy {
		return nil
	}
	dict, err := reader.FieldDictFuzzy(f.String(), term, fuzziness(term), term[:1])
	if err != nil {
		return err
	}
	return collect(dict, found, func(known string) float64 {
		return 1 - float64(nearest.Distance(term, known))/float64(len(term))
	})
}

// fuzziness is how many letters of a word may be wrong.
func fuzziness(term string) int {
	if len(term) >= 8 {
		return 2
	}
	return 1
}

func collect(dict blevesearch.FieldDict, found map[string]float64, worth func(string) float64) error {
	for {
		entry, err := dict.Next()
		if entry == nil || err != nil {
			return cmp.Or(err, dict.Close())
		}
		found[entry.Term] = max(found[entry.Term], worth(entry.Term))
	}
}

// halves splits a word that was written as one into two that the index knows.
func (r *search) halves(text string) []alternative { return nil }

// suggest returns the words that no document has and what is near to them.
func (r *search) suggest() (unmatched, suggested []string) {
	if r.req.unknown != "" {
		unmatched = append(unmatched, r.req.unknown)
		suggested = r.nearUpstreams(r.req.unknown)
	}
	for _, w := range r.unmatched {
		unmatched = append(unmatched, w.text)
		if len(suggested) >= maxSuggest || !w.plain || len(w.text) < minFuzzy {
			continue
		}
		if known := r.nearestWord(w.text); known != "" && !slices.Contains(suggested, known) {
			suggested = append(suggested, known)
		}
	}
	return unmatched, suggested
}

// nearestWord looks only at words that begin alike, which typing errors leave and which keeps it quick.
func (s *snapshot) nearestWord(text string) string {
	from, _ := slices.BinarySearch(s.vocabulary, text[:1])
	to := from
	for to < len(s.vocabulary) && strings.HasPrefix(s.vocabulary[to], text[:1]) {
		to++
	}
	return nearest.Of(text, s.vocabulary[from:to])
}

func (s *snapshot) nearUpstreams(name string) []string {
	ids := make([]string, len(s.upstreams))
	for i, up := range s.upstreams {
		ids[i] = up.id
	}
	if id := nearest.Of(name, ids); id != "" {
		return []string{id}
	}
	return nil
}
