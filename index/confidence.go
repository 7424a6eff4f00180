package index

import (
	"math"
	"slices"

	"sallyport/index/wordvec"
)

// A logistic model decides whether the best hit is weak, after words and vectors
// are scored. It was fitted on the odd queries of the judged sets: queries that a
// tool fits against queries that none fits, and queries whose upstreams with the
// right tools were removed. A hit below confidenceThreshold is only the nearest, not an
// answer. bench/results/ranking-steps.txt has its accuracy on the even queries.
const (
	// Of the hit's score, in units of two rare words.
	coefScore, maxScore = 1.8, 3.0
	// Of the share of the tool's name that the query has, synonyms included.
	coefName = 0.7
	// Of the natural logarithm of the number of words: a long query has many words that no tool mentions.
	coefWords = 2.5
	// Of a product in the query that all of the first hits lack, relative to a query of three words.
	coefProduct  = -8.4
	productWords = 3.0
	productDocs  = 5
	// Of the hit's coverage of the query, and of its similarity.
	coefCover, coefLikeness = 1.6, 2.1
	// Of whether the query names the hit's upstream.
	coefUpstream = 1.3
	// Of the query's verb if the hit lacks it.
	coefVerb = -1.0

	confidenceThreshold = 7.2
)

const (
	// Below fewDocs documents no word is rare and scores are meaningless: there a hit
	// with a coverage of fewCover is an answer.
	fewDocs  = 50
	fewCover = 0.6
	// A query of at most shortQuery words has too little signal for the model: a hit that has all of them in its
	// name or first sentence is an answer.
	shortQuery = 2
)

const (
	// A hit is an answer too if its favour is at least sureFavour, or if the other ranking also has it first and it
	// misses confidenceThreshold by at most alsoShort.
	sureFavour = 0.5
	alsoShort  = 1.0
)

// confidence estimates whether the best hit is an answer.
type confidence struct{ *search }

// measure records the best hit and by how much it misses confidenceThreshold.
func (r confidence) measure() {
	top := r.best(1)
	if len(top) == 0 {
		r.bestHit, r.shortfall = -1, confidenceThreshold
		return
	}
	r.bestHit, r.shortfall = top[0], confidenceThreshold-r.logit()
	if len(r.docs) < fewDocs && r.cover(r.work.marks[top[0]]) >= fewCover || r.matchesShortQuery(top[0]) {
		r.shortfall = 0
	}
}

// matchesShortQuery reports whether a document has all words of a query of one or two words in
// its name or first sentence. Of a verb and a noun only the noun is required.
func (r confidence) matchesShortQuery(ord int32) bool {
	asked := r.req.contentWords()
	if len(asked) > shortQuery {
		return false
	}
	things := slices.DeleteFunc(slices.Clone(asked), func(w queryWord) bool { return r.analyzers.verbs[w.stem] })
	if len(things) > 0 {
		asked = things
	}
	lead := map[string]bool{}
	for _, id := range r.facts[ord].lead {
		lead[r.texts[id]] = true
	}
	return !slices.ContainsFunc(asked, func(w queryWord) bool { return !lead[w.stem] })
}

// weak reports whether no document fits well, given that first is the best hit.
func (r confidence) weak(q Query, first int32) bool {
	id := r.docs[first].ID
	agreed := len(q.Also) > 0 && q.Also[0] == id && first == r.bestHit && r.shortfall <= alsoShort
	return r.shortfall > 0 && !agreed && !(q.Favour[id] >= sureFavour) // negated so that NaN is weak
}

// logit returns the output of the model before the logistic function: the larger, the likelier the best hit is an
// answer.
func (r confidence) logit() float64 {
	top := r.best(productDocs)
	if len(top) == 0 {
		return 0
	}
	first, words := top[0], float64(len(r.worth))
	lacks := 1.0
	for _, ord := range top {
		lacks = min(lacks, r.lacksProduct(ord))
	}
	return coefScore*min(r.work.score[first]/(2*r.maxIDF()), maxScore) +
		coefName*r.nameCover(first) +
		coefWords*math.Log(1+words) +
		coefProduct*lacks*productWords/max(words, 1) +
		coefCover*r.cover(r.work.marks[first]) +
		coefLikeness*r.similarity(first) +
		coefUpstream*r.upstreamNamed(first) +
		coefVerb*r.lacksVerb(first)
}

// similarity returns the similarity of a document to the query.
func (r confidence) similarity(ord int32) float64 {
	if r.likeness != nil {
		return float64(r.likeness[ord])
	}
	v, ok := r.analyzers.model.Embed(wordvec.Part{Words: embeddingWords(r.analyzers.model, r.req.list), Weight: 1})
	if !ok {
		return 0
	}
	return float64(v.Likeness(&r.vectors[ord]))
}

// upstreamNamed returns 1 if the query has a word of the id of the document's upstream, else 0.
func (r confidence) upstreamNamed(ord int32) float64 {
	for _, w := range r.analyzers.list(r.docs[ord].ID.Upstream) {
		if _, ok := r.termIndex[w.stem]; ok {
			return 1
		}
	}
	return 0
}

// lacksVerb returns the share of the query's first verb that the document lacks, 0 for a query without a verb.
func (r confidence) lacksVerb(ord int32) float64 {
	for _, w := range r.req.list {
		if !r.analyzers.verbs[w.stem] {
			continue
		}
		if wish, ok := r.termIndex[w.stem]; ok {
			return 1 - r.termShares(r.work.marks[ord])[wish]
		}
		return 0
	}
	return 0
}

// nameCover returns the share of a name's words that the query has, literally or by a synonym or phrase.
func (r confidence) nameCover(ord int32) float64 {
	asked := map[string]bool{}
	for _, w := range r.req.contentWords() {
		asked[w.stem] = true
		for _, other := range r.related[w.stem] {
			asked[other] = true
		}
	}
	for _, m := range r.concepts {
		for _, stem := range m.stems {
			asked[stem] = true
		}
	}
	in, both := 0, 0
	for _, w := range r.analyzers.list(r.docs[ord].wire()) {
		if w.stop {
			continue
		}
		in++
		if asked[w.stem] {
			both++
		}
	}
	return float64(both) / float64(max(in, 1))
}

// lacksProduct returns the share of a product in the query that the document lacks, 0 for a query without products.
func (r confidence) lacksProduct(ord int32) float64 {
	lacks, shares := 0.0, r.termShares(r.work.marks[ord])
	for _, w := range r.req.contentWords() {
		if w.role == roleProduct {
			lacks = max(lacks, 1-shares[r.termIndex[w.stem]])
		}
	}
	return lacks
}
