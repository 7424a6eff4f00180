package index

import (
	"maps"
	"math"
	"slices"

	"sallyport/index/wordvec"
)

// signals are what the confidence in the best hit is computed from, after words and vectors are scored. The number of
// words of the query is none of them: a long query is no better answered than a short one with the same matches.
type signals struct {
	// score is the logarithm of the hit's score, in units of two rare words.
	score float64
	// cover is the hit's coverage of the query, likeness its similarity.
	cover, likeness float64
	// product is the share of a product in the query that all of the first productDocs lack, less in a long query.
	product float64
	// asked is the weight of the query's words in the hit's name and first sentence, in rare words; asked3 is the
	// greatest among the first coverDocs hits, synonyms and phrases included, and askedAll that of the hit.
	asked, askedAll, asked3 float64
	// drop is by how much of the first score the dropDocs-th is below it.
	drop float64
	// proper and values are the shares of names, and of numbers and quoted words, in the query.
	proper, values float64
}

// The coefficients of a logistic model of whether the best hit is an answer, fitted on the odd queries of the judged sets:
// those that were answered against those that nothing fits, that were answered wrong, or whose upstreams
// with the right tools were removed. bench/results/ranking-steps.txt has its accuracy on the even queries.
const (
	coefScore    = 1.68
	coefCover    = 1.30
	coefLikeness = 1.01
	coefProduct  = -4.40
	coefAsked    = -0.28
	coefAskedAll = 0.45
	coefAsked3   = 0.82
	coefDrop     = 0.78
	coefProper   = 0.83
	coefValues   = 1.05
	coefBase     = -2.89

	// Below confidenceThreshold a hit is only the nearest, not an answer: less than a third of them are right.
	confidenceThreshold = -0.65

	productWords = 3.0
	productDocs  = 5
	dropDocs     = 10
	// phraseWorth is the weight of a word that a phrase of the query means, in rare words.
	phraseWorth = 0.5
	// maxAsked bounds the weights of asked words.
	maxAsked = 3.0
)

const (
	// Below fewDocs documents no word is rare and scores are meaningless: there a hit
	// with a coverage of fewCover is an answer.
	fewDocs  = 50
	fewCover = 0.6
	// A query of at most shortQuery words has too little signal for the model: a hit that has all of them in its
	// name or first sentence is an answer.
	shortQuery = 2
	// plainly is by how much such answers exceed confidenceThreshold at least.
	plainly = 1.5
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
	if r.fewAndCovered(top[0]) || r.matchesShortQuery(top[0]) {
		r.shortfall = min(r.shortfall, -plainly)
	}
}

// fewAndCovered reports whether a document covers the query in an index where scores are meaningless.
func (r confidence) fewAndCovered(ord int32) bool {
	return len(r.docs) < fewDocs && r.cover(r.work.marks[ord]) >= fewCover
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

// estimate returns the estimated probability, 0 to 1, that one of the first five documents is an answer, given that first is
// the best hit.
func (r confidence) estimate(q Query, first int32) float64 {
	logit := confidenceThreshold - r.shortfall
	if !r.weak(q, first) {
		logit = max(logit, confidenceThreshold)
	}
	return math.Round(probability(logit)*confidenceDigits) / confidenceDigits
}

// confidenceDigits bounds the digits of an estimate: the last ones depend on the order of additions.
const confidenceDigits = 1000

// probability is the logistic function.
func probability(logit float64) float64 { return 1 / (1 + math.Exp(-logit)) }

// logit returns the output of the model before the logistic function: the larger, the likelier the best hit is an
// answer.
func (r confidence) logit() float64 {
	top := r.best(dropDocs)
	if len(top) == 0 {
		return math.Inf(-1)
	}
	s := r.signals(top)
	return coefBase + coefScore*s.score + coefCover*s.cover + coefLikeness*s.likeness + coefProduct*s.product + coefAsked*s.asked +
		coefAskedAll*s.askedAll + coefAsked3*s.asked3 + coefDrop*s.drop + coefProper*s.proper + coefValues*s.values
}

// signals returns the signals of a search with the best hits top.
func (r confidence) signals(top []int32) signals {
	first := top[0]
	scores := r.work.score
	words := float64(max(len(r.worth), 1))
	s := signals{
		score:    math.Log(0.1 + scores[first]/(2*r.maxIDF())),
		cover:    r.cover(r.work.marks[first]),
		likeness: r.similarity(first),
		product:  1,
		drop:     1 - scores[top[len(top)-1]]/scores[first],
		proper:   r.share(roleProper),
		values:   r.share(roleValue),
	}
	for _, ord := range top[:min(productDocs, len(top))] {
		s.product = min(s.product, r.lacksProduct(ord))
	}
	s.product *= productWords / words
	literal, all := r.asked()
	s.asked = math.Log(0.1 + min(maxAsked, r.leadWorth(first, literal)))
	s.askedAll = min(maxAsked, r.leadWorth(first, all))
	for _, ord := range top[:min(coverDocs, len(top))] {
		s.asked3 = max(s.asked3, min(maxAsked, r.leadWorth(ord, all)))
	}
	return s
}

// share returns the share of the query's content words that have a role.
func (r confidence) share(of role) float64 {
	words, n := r.req.contentWords(), 0
	for _, w := range words {
		if w.role == of {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
}

// asked returns the weights of the query's content words by stem, in rare words, and the same with their phrases.
func (r confidence) asked() (literal, all map[string]float64) {
	literal, rare := map[string]float64{}, r.maxIDF()
	for _, w := range r.req.contentWords() {
		literal[w.stem] = r.worth[r.termIndex[w.stem]] / rare
	}
	all = maps.Clone(literal)
	for _, c := range r.concepts {
		for _, stem := range c.stems {
			if all[stem] == 0 {
				all[stem] = phraseWorth
			}
		}
	}
	return literal, all
}

// leadWorth returns the weight of the asked words in a document's name and first sentence.
func (r confidence) leadWorth(ord int32, asked map[string]float64) (sum float64) {
	for _, id := range r.facts[ord].lead {
		sum += asked[r.texts[id]]
	}
	return sum
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
