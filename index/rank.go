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
	// upstreamTop is how many of its best tools speak for an upstream.
	upstreamTop = 2
	// Feedback: the first documents lend their terms when the best of them has
	// less than this share of what was asked for.
	feedbackBelow = 0.45
	feedbackDocs  = 10
	feedbackTerms = 10
	// coverDocs is how many of the first documents are asked how much they cover.
	coverDocs = 3
	// fitDocs is how many of the first documents have their names compared with the query.
	fitDocs = 50
	// twinDocs is among how many of the first documents those of one name are kept apart.
	twinDocs = 50
	// addressed is what a tool of an upstream that stands before a colon gains, in parts of the best score.
	addressed = 0.2
)

// addUpstreams gives every document that matched a share of what speaks for
// its upstream: the mean score of the upstream's best tools.
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

// feedBack adds, for little, the terms that set the first documents apart,
// where the query's own words matched too little to rank by. Documents of one name count once.
func (r *search) feedBack(ctx context.Context) error {
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
		having, err := r.having(ctx, term)
		if err != nil {
			return nil, err
		}
		terms = append(terms, alternative{term, weight * inverse(len(r.docs), having)})
	}
	sortAlternatives(terms)
	return terms, nil
}

// shareTerms adds a document's score to each of its telling terms that was not asked for.
func (r *search) shareTerms(ord int32, share map[string]float64) {
	for _, id := range r.facts[ord].lead {
		if term := r.texts[id]; !r.used[term] && len(term) >= minPrefix {
			share[term] += r.work.score[ord]
		}
	}
}

// best returns the k best documents so far, best first, equals in the order of ids.
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

// bestCover returns the greatest share of what was asked for that one of the first documents has.
func (r *search) bestCover(top []int32) float64 {
	best := 0.0
	for _, ord := range top[:min(coverDocs, len(top))] {
		best = max(best, r.cover(r.work.marks[ord]))
	}
	return best
}

// judge adds what the query means and each of its needs, and finds out whether anything fits.
func (r *search) judge(ctx context.Context) error {
	r.compare()
	r.blend()
	confidence{r}.measure()
	if err := r.addNeeds(ctx); err != nil {
		return err
	}
	r.preferNamed()
	return nil
}

// preferNamed lifts the tools of upstreams that the query is addressed to.
func (r *search) preferNamed() {
	by := addressed * r.top()
	for _, ord := range r.work.hit {
		if slices.Contains(r.req.addressed, r.docs[ord].ID.Upstream) {
			r.work.score[ord] += by
		}
	}
}

// results ranks: exact names first, then by score, then by id.
func (r *search) results(q Query) Results {
	r.favour(q.Favour)
	r.fuse(q.Also)
	r.spreadTwins()
	pinned := r.pin()
	top := r.best(orDefault(q.Limit))
	res := Results{Total: len(r.work.hit), Hits: make([]Hit, len(top))}
	for i, ord := range top {
		res.Hits[i] = Hit{ID: r.docs[ord].ID, Kind: r.docs[ord].Kind, Score: r.work.score[ord], Cover: r.cover(r.work.marks[ord])}
	}
	res.Weak = !pinned && !r.partFits && (len(top) == 0 || confidence{r}.weak(q, top[0]))
	res.Words = len(r.req.telling())
	res.Unmatched, res.Suggest = r.suggest()
	if res.Weak {
		res.Upstreams = r.likelyUpstreams()
	}
	return res
}

// fitNames lifts the first documents by how far their name and the query are
// made of the same words: what BM25F, which looks at each word alone, does not see.
func (r *search) fitNames() {
	asked := map[string]bool{}
	for _, w := range r.req.telling() {
		asked[w.stem] = true
	}
	for _, ord := range r.best(fitDocs) {
		r.work.score[ord] *= 1 + r.weigh.nameFit*r.nameFit(ord, asked)
	}
}

// nameFit is the share of the query's and the name's words that both have (Dice's coefficient).
func (r *search) nameFit(ord int32, asked map[string]bool) float64 {
	both, fit := 0, r.facts[ord].fit
	for _, id := range fit {
		if asked[r.texts[id]] {
			both++
		}
	}
	return 2 * float64(both) / float64(max(len(asked)+len(fit), 1))
}

// searched reports whether a document is of the upstream asked for, if there is one.
func (r *search) searched(ord int32) bool {
	return r.req.upstream == "" || r.docs[ord].ID.Upstream == r.req.upstream
}

// restrict drops the hits of other upstreams than the one asked for: what comes
// after goes by what is left.
func (r *search) restrict() {
	r.work.hit = slices.DeleteFunc(r.work.hit, func(ord int32) bool {
		if r.searched(ord) {
			return false
		}
		r.work.score[ord], r.work.marks[ord] = 0, 0
		return true
	})
}

// pin lifts the documents above all others that have the query as id, next those that have it as
// name, then those with their id, or else name, in it: a name may be taken by
// any upstream, an id cannot. It reports whether there is one.
func (r *search) pin() bool {
	step := 1.0
	for _, ord := range r.work.hit {
		step = max(step, 1+r.work.score[ord])
	}
	lifted := map[int32]bool{}
	lift := func(key string, steps float64) {
		for _, ord := range r.pinned(key) {
			if lifted[ord] || !r.searched(ord) {
				continue
			}
			lifted[ord] = true
			by, d := steps*step, &r.docs[ord]
			switch {
			case slices.Contains(idKeys(d), key):
				by += step
			case r.req.text == d.wire(): // not only but for case and separators
				by += step / 2
			}
			r.lift(ord, by)
		}
	}
	lift(r.req.whole, 3)
	for _, key := range r.req.parts {
		lift(key, 1)
	}
	return len(lifted) > 0
}

// spreadTwins lowers documents with a name that, numbers in it apart, a better one has
// too, the more the more there are: what is there many times must not fill the list.
func (r *search) spreadTwins() {
	top, seen, floor := r.best(twinDocs), map[string]int{}, 0.0
	if len(top) == twinDocs {
		floor = r.work.score[top[twinDocs-1]]
	}
	for _, ord := range top {
		key := letters(r.docs[ord].wire())
		r.work.score[ord] = floor + (r.work.score[ord]-floor)*math.Pow(r.weigh.twin, float64(seen[key]))
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
