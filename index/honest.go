package index

import (
	"math"
	"slices"

	"sallyport/index/wordvec"
)

// Weak is what a small logistic model says of the best hit, after all that words
// and vectors say is added up. It was fitted on the odd queries of the judged
// sets: those that a tool fits against those that none fits, and those of which the
// upstreams with the right tools were taken away. A hit below honestBelow is
// the nearest there is, not an answer. bench/results/ranking-steps.txt has
// what it reaches on the even ones.
const (
	// How much of two rare words the hit's score is.
	honestScore, maxScore = 1.8, 3.0
	// How much of the tool's name was asked for in one word or another.
	honestName = 0.7
	// A sentence says much that no tool mentions: per natural logarithm of the words.
	honestWords = 2.5
	// A product that was asked for and that all of the first hits lack, in parts of a query of three words.
	honestProduct = -8.4
	productWords  = 3.0
	productDocs   = 5
	// How much of what was asked for the hit has, and how like it is in meaning.
	honestCover, honestLike = 1.6, 2.1
	// The hit's upstream was named.
	honestUpstream = 1.3
	// What is to be done, and the hit does not do.
	honestVerb = -1.0

	honestBelow = 7.2
)

const (
	// Among so few documents no word is rare, and scores say nothing: there a hit is
	// an answer that has this much of what was asked for.
	fewDocs  = 50
	fewCover = 0.6
	// So few words say too little for the model: a hit is an answer that says all of them of itself.
	shortQuery = 2
)

const (
	// A hit is an answer too that was called after queries like this one, so that it is favoured
	// this much, or that another ranking has first as well and that lacks no more than this.
	sureFavour = 0.5
	alsoShort  = 1.0
)

// confidence says how sure a result is.
type confidence struct{ *search }

// measure notes how much the best hit lacks to be an answer.
func (r confidence) measure() {
	top := r.best(1)
	if len(top) == 0 {
		r.own, r.short = -1, honestBelow
		return
	}
	r.own, r.short = top[0], honestBelow-r.honesty()
	if len(r.docs) < fewDocs && r.cover(r.work.marks[top[0]]) >= fewCover || r.says(top[0]) {
		r.short = 0
	}
}

// says reports whether a query of a word or two stands in what a document is
// called and begins with; of a verb and a thing it is the thing that has to.
func (r confidence) says(ord int32) bool {
	asked := r.req.telling()
	if len(asked) > shortQuery {
		return false
	}
	things := slices.DeleteFunc(slices.Clone(asked), func(w queryWord) bool { return r.words.verbs[w.stem] })
	if len(things) > 0 {
		asked = things
	}
	lead := map[string]bool{}
	for _, id := range r.facts[ord].lead {
		lead[r.texts[id]] = true
	}
	return !slices.ContainsFunc(asked, func(w queryWord) bool { return !lead[w.stem] })
}

// weak reports whether nothing fits well, now that first is the best hit.
func (r confidence) weak(q Query, first int32) bool {
	id := r.docs[first].ID
	agreed := len(q.Also) > 0 && q.Also[0] == id && first == r.own && r.short <= alsoShort
	return r.short > 0 && !agreed && !(q.Favour[id] >= sureFavour) // of what is no number too
}

// honesty is the more the likelier the best hit is an answer.
func (r confidence) honesty() float64 {
	top := r.best(productDocs)
	if len(top) == 0 {
		return 0
	}
	first, words := top[0], float64(len(r.worth))
	lacks := 1.0
	for _, ord := range top {
		lacks = min(lacks, r.lacksProduct(ord))
	}
	return honestScore*min(r.work.score[first]/(2*r.rarest()), maxScore) +
		honestName*r.nameCover(first) +
		honestWords*math.Log(1+words) +
		honestProduct*lacks*productWords/max(words, 1) +
		honestCover*r.cover(r.work.marks[first]) +
		honestLike*r.likeTo(first) +
		honestUpstream*r.upstreamNamed(first) +
		honestVerb*r.lacksVerb(first)
}

// likeTo returns how like a document is to what the query means.
func (r confidence) likeTo(ord int32) float64 {
	if r.likeness != nil {
		return float64(r.likeness[ord])
	}
	v, ok := r.words.model.Embed(wordvec.Part{Words: meaningWords(r.words.model, r.req.list), Weight: 1})
	if !ok {
		return 0
	}
	return float64(v.Likeness(&r.vectors[ord]))
}

// upstreamNamed is 1 if a word of the query is one of the id of the document's upstream, else 0.
func (r confidence) upstreamNamed(ord int32) float64 {
	for _, w := range r.words.list(r.docs[ord].ID.Upstream) {
		if _, ok := r.wishOf[w.stem]; ok {
			return 1
		}
	}
	return 0
}

// lacksVerb is 1 if the document has nothing of the first verb of the query, 0 if it has it or there is none.
func (r confidence) lacksVerb(ord int32) float64 {
	for _, w := range r.req.list {
		if !r.words.verbs[w.stem] {
			continue
		}
		if wish, ok := r.wishOf[w.stem]; ok {
			return 1 - r.granted(r.work.marks[ord])[wish]
		}
		return 0
	}
	return 0
}

// nameCover is the share of a name's words that were asked for, by themselves or by another word.
func (r confidence) nameCover(ord int32) float64 {
	asked := map[string]bool{}
	for _, w := range r.req.telling() {
		asked[w.stem] = true
		for _, other := range r.related[w.stem] {
			asked[other] = true
		}
	}
	for _, m := range r.senses {
		for _, stem := range m.stems {
			asked[stem] = true
		}
	}
	in, both := 0, 0
	for _, w := range r.words.list(r.docs[ord].wire()) {
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

// lacksProduct is 1 if a product was asked for of which the document has nothing, 0 if none was.
func (r confidence) lacksProduct(ord int32) float64 {
	lacks, shares := 0.0, r.granted(r.work.marks[ord])
	for _, w := range r.req.telling() {
		if w.role == product {
			lacks = max(lacks, 1-shares[r.wishOf[w.stem]])
		}
	}
	return lacks
}
