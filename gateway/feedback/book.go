package feedback

import (
	"maps"
	"slices"
	"time"

	"sallyport/internal/tool"
)

const (
	// alikeFrom is the minimum similarity of two queries, as the cosine of their words,
	// for one to count for the other.
	alikeFrom = 0.5
	// convincing is how many searches give a tool half of the maximum boost.
	convincing = 3
)

// book has the pairs of one principal.
type book struct {
	// base has the stored pairs, fresh the unsaved ones, known both; loaded says that
	// base is up to date.
	base, fresh, known Known
	loaded             bool
	used               time.Time
	traces             *traces // index of known; nil if it must be rebuilt
}

// traces is an index of pairs by stem.
type traces struct {
	pairs []Pair
	norms []float64 // of their words
	stems map[string][]trace
}

// trace is a pair that has a stem, with the weight of the stem.
type trace struct {
	pair   int
	weight float64
}

func newBook() *book {
	return &book{base: Known{}, fresh: Known{}, known: Known{}, used: time.Now()}
}

// adopt sets the stored pairs.
func (b *book) adopt(kept Known) {
	b.base, b.loaded = kept, true
	b.known = maps.Clone(kept)
	b.known.Join(b.fresh)
	b.traces = nil
}

// add adds a pair.
func (b *book) add(p Pair) {
	for _, k := range []Known{b.fresh, b.known} {
		if old, ok := k[p.key()]; ok {
			k[p.key()] = join(old, p)
		} else {
			k[p.key()] = p
		}
		if len(k) > maxPairs+maxPairs/10 { // not at each call
			k.prune(maxPairs)
		}
	}
	b.traces = nil
}

func (b *book) lookup() *traces {
	if b.traces != nil {
		return b.traces
	}
	all := &traces{stems: map[string][]trace{}}
	for i, key := range slices.Sorted(maps.Keys(b.known)) {
		p := b.known[key]
		all.pairs, all.norms = append(all.pairs, p), append(all.norms, p.Words.norm())
		for stem, weight := range p.Words {
			all.stems[stem] = append(all.stems[stem], trace{i, weight})
		}
	}
	b.traces = all
	return all
}

// alike returns the similarity of each pair's words to the query, 0 to 1.
func (t *traces) alike(query Words) []float64 {
	alike, norm := make([]float64, len(t.pairs)), query.norm()
	for stem, weight := range query {
		for _, at := range t.stems[stem] {
			alike[at.pair] += weight * at.weight
		}
	}
	for i, dot := range alike {
		alike[i] = max(0, min(1, (dot/(norm*t.norms[i])-alikeFrom)/(1-alikeFrom)))
	}
	return alike
}

// favour adds up, for each tool, the strengths of the pairs with words similar to
// the query. One search has almost no effect, three give half of the maximum, and of
// several tools for the same words the most frequently called one is boosted most.
func (b *book) favour(query Words, current func(tool.ID) string) map[tool.ID]float64 {
	now, all := time.Now().Unix(), b.lookup()
	evidence, most := map[tool.ID]float64{}, 0.0
	for i, alike := range all.alike(query) {
		if p := all.pairs[i]; alike > 0 && p.Digest == current(p.Tool) {
			evidence[p.Tool] += alike * p.at(now)
			most = max(most, evidence[p.Tool])
		}
	}
	for id, e := range evidence {
		cube := e * e * e
		evidence[id] = cube / (cube + convincing*convincing*convincing) * e / most
	}
	return evidence
}
