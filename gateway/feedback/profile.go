package feedback

import (
	"maps"
	"slices"
	"time"

	"sallyport/internal/tool"
)

const (
	// minSimilarity is the minimum similarity of two queries, as the cosine of their words,
	// for one to count for the other.
	minSimilarity = 0.5
	// halfBoostSearches is how many searches give a tool half of the maximum boost.
	halfBoostSearches = 3
)

// profile has the pairs of one principal.
type profile struct {
	// base has the stored pairs, fresh the unsaved ones, known both; loaded says that
	// base is up to date.
	base, unsaved, known Pairs
	loaded               bool
	baseTime             time.Time // when base was set
	used                 time.Time
	index                *pairIndex // index of known; nil if it must be rebuilt
}

// pairIndex is an index of pairs by stem.
type pairIndex struct {
	pairs []Pair
	norms []float64 // of their words
	stems map[string][]posting
}

// posting is a pair that has a stem, with the weight of the stem.
type posting struct {
	pair   int
	weight float64
}

func newProfile() *profile {
	return &profile{base: Pairs{}, unsaved: Pairs{}, known: Pairs{}, used: time.Now()}
}

// setBase sets the stored pairs.
func (b *profile) setBase(kept Pairs) {
	b.base, b.loaded, b.baseTime = kept, true, time.Now()
	b.known = maps.Clone(kept)
	b.known.Merge(b.unsaved)
	b.index = nil
}

// add adds a pair.
func (b *profile) add(p Pair) {
	for _, k := range []Pairs{b.unsaved, b.known} {
		if old, ok := k[p.key()]; ok {
			k[p.key()] = mergePair(old, p)
		} else {
			k[p.key()] = p
		}
		if len(k) > maxPairs+maxPairs/10 { // not at each call
			k.prune(maxPairs)
		}
	}
	b.index = nil
}

func (b *profile) lookup() *pairIndex {
	if b.index != nil {
		return b.index
	}
	all := &pairIndex{stems: map[string][]posting{}}
	for i, key := range slices.Sorted(maps.Keys(b.known)) {
		p := b.known[key]
		all.pairs, all.norms = append(all.pairs, p), append(all.norms, p.Words.norm())
		for stem, weight := range p.Words {
			all.stems[stem] = append(all.stems[stem], posting{i, weight})
		}
	}
	b.index = all
	return all
}

// similarities returns the similarity of each pair's words to the query, 0 to 1.
func (t *pairIndex) similarities(query Words) []float64 {
	alike, norm := make([]float64, len(t.pairs)), query.norm()
	for stem, weight := range query {
		for _, at := range t.stems[stem] {
			alike[at.pair] += weight * at.weight
		}
	}
	for i, dot := range alike {
		alike[i] = max(0, min(1, (dot/(norm*t.norms[i])-minSimilarity)/(1-minSimilarity)))
	}
	return alike
}

// boost adds up, for each tool, the strengths of the pairs with words similar to
// the query. One search has almost no effect, three give half of the maximum, and of
// several tools for the same words the most frequently called one is boosted most.
func (b *profile) boost(query Words, current func(tool.ID) string) map[tool.ID]float64 {
	now, all := time.Now().Unix(), b.lookup()
	evidence, most := map[tool.ID]float64{}, 0.0
	for i, alike := range all.similarities(query) {
		if p := all.pairs[i]; alike > 0 && p.Digest == current(p.Tool) {
			evidence[p.Tool] += alike * p.at(now)
			most = max(most, evidence[p.Tool])
		}
	}
	for id, e := range evidence {
		cube := e * e * e
		evidence[id] = cube / (cube + halfBoostSearches*halfBoostSearches*halfBoostSearches) * e / most
	}
	return evidence
}
