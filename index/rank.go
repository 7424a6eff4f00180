package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
)

const (
	// upstreamTop is the number of an upstream's best tools that are its evidence.
	upstreamTop = 2
	// Pseudo-relevance feedback adds terms of the first documents to the query if the
	// best of them covers less than feedbackBelow of it.
	feedbackBelow = 0.45
	feedbackDocs  = 10
	feedbackTerms = 10
	// coverDocs is the number of first documents to compute the coverage of.
	coverDocs = 3
	// fitDocs is the number of first documents to compare with the query by name.
	fitDocs = 50
	// duplicateDocs is the number of first documents in which duplicates by name are demoted.
	duplicateDocs = 50
	// addressedBoost is the boost of the tools of an upstream before a colon, as a share of the best score.
	addressedBoost = 0.2
)

// addUpstreams adds to every hit a share of the evidence for its upstream, which is
// the mean score of the upstream's best tools.
func (r *search) addUpstreams() {
	r.evidence = make([]float64, len(r.upstreams))
	for i, up := range r.upstreams {
		first, second := 0.0, 0.0
		for _, score := range r.work.score[up.first:up.last] {
			if score > first {
				first, second = score, first
			} else if score > second {
				second = score
			}
		}
		r.evidence[i] = (first + second) / upstreamTop
	}
	for _, ord := range r.work.hit {
		up := r.upstreamOf[ord]
		r.work.score[ord] += r.weigh.upstream * r.evidence[up]
	}
}

// addFeedback adds the distinctive terms of the first documents with a low weight, if
// the query's own words match too little. Documents of one name count once.
func (r *search) addFeedback(ctx context.Context) error {
	top := r.best(3 * feedbackDocs)
	if len(top) == 0 || r.bestCover(top) >= feedbackBelow {
		return nil
	}
	terms, err := r.feedbackTerms(ctx, top)
	if err != nil {
		return err
	}
	for _, t := range terms[:min(len(terms), feedbackTerms)] {
		if err := (scorer{r}).scoreExtra(ctx, t.term, r.weigh.feedback*t.weight/terms[0].weight); err != nil {
			return err
		}
	}
	return nil
}

func (r *search) feedbackTerms(ctx context.Context, top []int32) ([]alternative, error) {
	share, names := map[string]float64{}, map[string]bool{}
	for _, ord := range top {
		if key := nameKey(r.docs[ord].wire()); !names[key] && len(names) < feedbackDocs {
			names[key] = true
			r.shareTerms(ord, share)
		}
	}
	terms := make([]alternative, 0, len(share))
	for term, weight := range share {
		having, err := r.docFreq(ctx, term)
		if err != nil {
			return nil, err
		}
		terms = append(terms, alternative{term, weight * inverseDocFreq(len(r.docs), having)})
	}
	sortAlternatives(terms)
	return terms, nil
}

// shareTerms adds a document's score to each of its lead terms that the query does not have.
func (r *search) shareTerms(ord int32, share map[string]float64) {
	for _, id := range r.facts[ord].lead {
		if term := r.texts[id]; !r.used[term] && len(term) >= minPrefix {
			share[term] += r.work.score[ord]
		}
	}
}

// best returns the k best documents so far, best first, ties in the order of ids.
func (r *search) best(k int) []int32 {
	top := make([]int32, 0, min(k, len(r.work.hit))+1)
	order := func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.work.score[b], r.work.score[a]), cmp.Compare(a, b))
	}
	for _, ord := range r.work.hit {
		if len(top) == k && order(ord, top[k-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, ord, order)
		top = slices.Insert(top, at, ord)
		top = top[:min(len(top), k)]
	}
	return top
}

// bestCover returns the greatest coverage of the query among the first documents.
func (r *search) bestCover(top []int32) float64 {
	best := 0.0
	for _, ord := range top[:min(coverDocs, len(top))] {
		best = max(best, r.cover(r.work.marks[ord]))
	}
	return best
}

// refine adds similarity and subqueries to the scores, and computes the confidence.
func (r *search) refine(ctx context.Context) error {
	r.computeLikeness()
	r.blend()
	if err := r.preferNamed(ctx); err != nil {
		return err
	}
	confidence{r}.measure()
	return r.addSubqueries(ctx)
}

// results returns the ranked hits: exact names first, then by score, then by id.
func (r *search) results(q Query) Results {
	r.favour(q.Favour)
	r.fuse(q.Also, q.AlsoWeight)
	r.demoteDuplicates()
	pinned := r.pin()
	top := r.best(orDefault(q.Limit))
	res := Results{Total: len(r.work.hit), Needs: r.needs, Hits: make([]Hit, len(top))}
	for i, ord := range top {
		res.Hits[i] = Hit{ID: r.docs[ord].ID, Kind: r.docs[ord].Kind, Score: r.work.score[ord], Cover: r.cover(r.work.marks[ord])}
	}
	res.Weak = !pinned && (len(top) == 0 || confidence{r}.weak(q, top[0]))
	switch {
	case pinned:
		res.Confidence = 1
	case len(top) > 0:
		res.Confidence = confidence{r}.estimate(q, top[0])
	}
	res.Words = len(r.req.contentWords())
	res.Unmatched, res.Suggest = r.suggest()
	if res.Weak {
		res.Upstreams = r.likelyUpstreams()
	}
	return res
}

// fitNames boosts the first documents by the overlap of their name with the query,
// which BM25F does not see since it scores each word alone.
func (r *search) fitNames() {
	asked := map[string]bool{}
	for _, w := range r.req.contentWords() {
		asked[w.stem] = true
	}
	for _, ord := range r.best(fitDocs) {
		r.work.score[ord] *= 1 + r.weigh.nameFit*r.nameFit(ord, asked)
	}
}

// nameFit returns Dice's coefficient of the query's and the name's words.
func (r *search) nameFit(ord int32, asked map[string]bool) float64 {
	both, fit := 0, r.facts[ord].nameStems
	for _, id := range fit {
		if asked[r.texts[id]] {
			both++
		}
	}
	return 2 * float64(both) / float64(max(len(asked)+len(fit), 1))
}

// inScope reports whether a document belongs to the requested upstream, if there is one.
func (r *search) inScope(ord int32) bool {
	return r.req.upstream == "" || r.docs[ord].ID.Upstream == r.req.upstream
}

// restrict drops the hits outside the requested upstream, so that the following
// steps do not see them.
func (r *search) restrict() {
	r.work.hit = slices.DeleteFunc(r.work.hit, func(ord int32) bool {
		if r.inScope(ord) {
			return false
		}
		r.work.score[ord], r.work.marks[ord] = 0, 0
		return true
	})
}

// pin boosts exact matches above all other documents: first documents with the query as
// their id, then as their name, then those with an id or a name in the query. Ids
// rank above names since any upstream can use any name. It reports whether it found one.
func (r *search) pin() bool {
	step := 1.0
	for _, ord := range r.work.hit {
		step = max(step, 1+r.work.score[ord])
	}
	lifted := map[int32]bool{}
	lift := func(key string, steps float64) {
		for _, ord := range r.pinnedDocs(key) {
			if lifted[ord] || !r.inScope(ord) {
				continue
			}
			lifted[ord] = true
			by, d := steps*step, &r.docs[ord]
			switch {
			case slices.Contains(idKeys(d), key):
				by += step
			case r.req.text == d.wire(): // case and separators match too
				by += step / 2
			}
			r.boost(ord, by)
		}
	}
	lift(r.req.wholeKey, 3)
	for _, key := range r.req.nameKeys {
		lift(key, 1)
	}
	return len(lifted) > 0
}

// demoteDuplicates demotes documents whose name, apart from digits, equals that of a better
// one, each further one more, so that duplicates do not fill the list.
func (r *search) demoteDuplicates() {
	top, seen, floor := r.best(duplicateDocs), map[string]int{}, 0.0
	if len(top) == duplicateDocs {
		floor = r.work.score[top[duplicateDocs-1]]
	}
	for _, ord := range top {
		key := letters(r.docs[ord].wire())
		r.work.score[ord] = floor + (r.work.score[ord]-floor)*math.Pow(r.weigh.duplicate, float64(seen[key]))
		seen[key]++
	}
}

// letters returns the letters of a name in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
