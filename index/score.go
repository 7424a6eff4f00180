package index

import (
	"cmp"
	"context"
	"slices"
)

// maxMarks is the maximum number of look-ups that a search can mark in documents.
const maxMarks = 64

// coverage tracks which terms of a query each document covers. A term is a content
// word of the query. Each look-up sets a bit, its mark, in the documents that match;
// several marks may cover one term, each a share of it.
type coverage struct {
	worth []float64     // weight of each term
	marks [][]termShare // shares that each bit of a document's marks covers
}

type termShare struct {
	term  int
	share float64
}

func (a *coverage) addTerm(worth float64) int {
	a.worth = append(a.worth, worth)
	return len(a.worth) - 1
}

// newMark returns a new bit that covers grants, 0 if none is left.
func (a *coverage) newMark(grants ...termShare) uint64 {
	if len(a.marks) == maxMarks || len(grants) == 0 {
		return 0
	}
	a.marks = append(a.marks, grants)
	return 1 << (len(a.marks) - 1)
}

// extendMark makes the first mark of a term, which is that of the word itself, cover more.
func (a *coverage) extendMark(wish int, more []termShare) {
	for bit, grants := range a.marks {
		if grants[0].term == wish {
			a.marks[bit] = append(grants, more...)
			return
		}
	}
}

// totalWorth returns the total weight of all terms.
func (a *coverage) totalWorth() float64 {
	sum := 0.0
	for _, w := range a.worth {
		sum += w
	}
	return sum
}

// termShares returns the share of each term, 0 to 1, that a document with marks covers.
func (a *coverage) termShares(marks uint64) []float64 {
	shares := make([]float64, len(a.worth))
	for bit, grants := range a.marks {
		if marks&(1<<bit) == 0 {
			continue
		}
		for _, g := range grants {
			shares[g.term] = min(1, shares[g.term]+g.share)
		}
	}
	return shares
}

// cover returns the weighted share of the query, 0 to 1, that a document with marks covers.
func (a *coverage) cover(marks uint64) float64 {
	has := 0.0
	for w, share := range a.termShares(marks) {
		has += share * a.worth[w]
	}
	return has / max(a.totalWorth(), 1e-9)
}

// alternative is a term to look up and its weight.
type alternative struct {
	term   string
	weight float64
}

// scorer computes the scores of documents.
type scorer struct{ *search }

// score adds up the scores of the words, or of similar terms if no document has
// them, of joined adjacent words, phrases, synonyms, feedback terms and upstreams.
func (r scorer) score(ctx context.Context) error {
	r.used = map[string]bool{}
	r.readPhrases()
	for _, w := range r.req.words {
		r.used[w.stem] = true
		if err := r.scoreWord(ctx, w); err != nil {
			return err
		}
	}
	for _, j := range r.req.compounds {
		if err := r.scoreCompound(ctx, j); err != nil {
			return err
		}
	}
	if err := r.scorePhrases(ctx); err != nil {
		return err
	}
	for _, w := range r.req.words {
		for _, syn := range r.related[w.stem] {
			if err := r.scoreExtra(ctx, syn, r.weigh.synonym); err != nil {
				return err
			}
		}
	}
	if err := r.addFeedback(ctx); err != nil {
		return err
	}
	r.addUpstreams()
	r.restrict()
	r.fitNames()
	return nil
}

// readPhrases finds the phrases of the query and adds a term for each content word.
func (r scorer) readPhrases() {
	r.matchedPhrases = r.phrases.find(r.req.list)
	r.termIndex, r.inPhrase = map[string]int{}, map[string]int{}
	for _, w := range r.req.words {
		if !w.stop {
			r.termIndex[w.stem] = r.addTerm(0)
		}
	}
	r.concepts = r.findConcepts()
	for _, s := range r.matchedPhrases {
		for _, stem := range s.stems {
			r.inPhrase[stem] = max(r.inPhrase[stem], len(s.stems))
		}
	}
}

// scoreExtra scores a term that is not in the query, unless it is already scored.
func (r scorer) scoreExtra(ctx context.Context, term string, weight float64) error {
	if r.used[term] {
		return nil
	}
	r.used[term] = true
	_, err := r.add(ctx, []alternative{{term, 1}}, weight, 0)
	return err
}

// scoreCompound scores adjacent words written as one. A document that has them covers each word.
func (r scorer) scoreCompound(ctx context.Context, j compound) error {
	term := string(r.analyzers.stem.stem([]byte(j.text)))
	if r.used[term] {
		return nil
	}
	r.used[term] = true
	var grants []termShare
	for _, w := range r.termIndexes(j.stems) {
		grants = append(grants, termShare{w, 1})
	}
	_, err := r.add(ctx, []alternative{{term, 1}}, r.weigh.compound, r.newMark(grants...))
	return err
}

func (r scorer) scoreWord(ctx context.Context, w queryWord) error {
	if w.stop {
		_, err := r.add(ctx, []alternative{{w.stem, 1}}, r.weigh.stop, 0)
		return err
	}
	weight := 1.0
	if r.inPhrase[w.stem] > 1 {
		weight = r.weigh.inPhrase
	}
	wish := r.termIndex[w.stem]
	idf, err := r.add(ctx, []alternative{{w.stem, 1}}, weight, r.newMark(termShare{wish, 1}))
	if err != nil {
		return err
	}
	r.worth[wish] = idf
	if idf > 0 || r.inPhrase[w.stem] > 0 { // scorePhrases handles words of phrases
		return nil
	}
	return r.scoreMissing(ctx, w)
}

// scoreMissing scores synonyms of a word that no document has, else similarly spelt terms.
func (r scorer) scoreMissing(ctx context.Context, w queryWord) error {
	wish := r.termIndex[w.stem]
	var same []alternative
	for _, syn := range r.related[w.stem] {
		same = append(same, alternative{syn, 1})
	}
	idf, err := r.add(ctx, same, r.weigh.substitute, r.newMark(termShare{wish, r.weigh.substitute}))
	if r.worth[wish] = idf; idf > 0 || err != nil {
		return err
	}
	missed := r.recordMissing(w)
	near := r.nearTerms(missed)
	if len(near) == 0 {
		if halves := r.halves(w); halves != nil {
			return r.scoreHalves(ctx, wish, halves)
		}
	}
	share := r.weigh.fuzzy
	if sure := len(near) > 0 && near[0].weight >= sureLikeness; sure {
		share = 1
	}
	idf, err = r.add(ctx, near, r.weigh.fuzzy, r.newMark(termShare{wish, share}))
	switch {
	case w.role == roleProper || w.role == roleValue || !w.plain: // letter pairs may span two words
		r.worth[wish] = r.weigh.lacking * r.maxIDF()
	case idf == 0:
		r.worth[wish] = r.maxIDF()
	case share == 1: // a misspelling must not lower the coverage of the rest
		r.worth[wish] = r.weigh.fuzzy * idf
	default:
		r.worth[wish] = idf
	}
	return err
}

// scoreHalves scores two words that were written as one. A document should have both.
func (r scorer) scoreHalves(ctx context.Context, wish int, halves []string) error {
	for _, half := range halves {
		idf, err := r.add(ctx, []alternative{{half, 1}}, r.weigh.fuzzy, r.newMark(termShare{wish, r.weigh.fuzzy / 2}))
		if err != nil {
			return err
		}
		r.worth[wish] = max(r.worth[wish], idf)
	}
	return nil
}

// queryConcept is a concept of one or more phrases of the query.
type queryConcept struct {
	stems  []string
	shares []termShare
}

// scorePhrases scores the concepts of the query's phrases. A document that has one covers the words of the phrase.
func (r scorer) scorePhrases(ctx context.Context) error {
	explained := make([]float64, len(r.worth))
	for _, m := range r.concepts {
		idf, err := r.scoreConcept(ctx, m)
		if err != nil {
			return err
		}
		for _, g := range m.shares {
			explained[g.term] += idf / float64(len(m.shares))
		}
	}
	for _, w := range r.req.words {
		wish, ok := r.termIndex[w.stem]
		switch {
		case !ok || r.inPhrase[w.stem] == 0:
		case explained[wish] > 0:
			r.worth[wish] = min(cmp.Or(r.worth[wish], explained[wish]), explained[wish])
		case r.worth[wish] == 0:
			if err := r.scoreMissing(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// findConcepts returns the distinct concepts of all phrases of the query.
func (r scorer) findConcepts() []queryConcept {
	var all []queryConcept
	for _, s := range r.matchedPhrases {
		wishes := r.termIndexes(s.stems)
		for _, concept := range s.concepts {
			at := slices.IndexFunc(all, func(m queryConcept) bool { return slices.Equal(m.stems, concept) })
			if at < 0 {
				at = len(all)
				all = append(all, queryConcept{stems: concept})
			}
			for _, w := range wishes {
				all[at].shares = append(all[at].shares, termShare{w, 1 / float64(len(s.concepts))})
			}
		}
	}
	return all
}

func (r scorer) termIndexes(stems []string) []int {
	var wishes []int
	for _, stem := range stems {
		if w, ok := r.termIndex[stem]; ok && !slices.Contains(wishes, w) {
			wishes = append(wishes, w)
		}
	}
	return wishes
}

// scoreConcept scores the words of a concept as one term, without words of the query, which are already scored.
func (r scorer) scoreConcept(ctx context.Context, m queryConcept) (float64, error) {
	var terms []alternative
	most := 0.0
	for _, stem := range m.stems {
		if w, ok := r.termIndex[stem]; ok {
			most = max(most, r.worth[w])
			r.extendMark(w, m.shares)
		} else {
			terms = append(terms, alternative{stem, 1})
		}
	}
	idf, err := r.add(ctx, terms, r.weigh.phrase, r.newMark(m.shares...))
	return max(idf, most), err
}
