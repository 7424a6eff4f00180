package index

import "math"

// Weak is what a small logistic model says of the best hit. It was fitted on the
// odd queries of the judged sets (those that a tool fits against those that none
// fits) and rounded; a hit below honestBelow is the nearest there is, not an
// answer. bench/results/issue-5-ranking.txt has what it reaches on the even ones.
const (
	// How much of a full match the hit's score is, and how much of two rare words.
	honestMatch, maxMatch = 2.7, 2.0
	honestScore, maxScore = 4.0, 3.0
	// How much of the tool's name was asked for in one word or another.
	honestName = 1.3
	// A sentence says much that no tool mentions: per natural logarithm of the words.
	honestWords = 1.4
	// A product that was asked for and that the tool lacks, in parts of a query of three words.
	honestProduct = -10.0
	productWords  = 3.0

	honestBelow = 8.15
)

const (
	// Among so few documents no word is rare, and scores say nothing: there a hit is
	// an answer that has this much of what was asked for.
	fewDocs  = 50
	fewCover = 0.6
)

// weak reports whether nothing fits well.
func (r *search) weak() bool {
	if len(r.docs) < fewDocs {
		top := r.best(1)
		return len(top) == 0 || r.cover(r.work.marks[top[0]]) < fewCover && r.honesty() < honestBelow
	}
	return r.honesty() < honestBelow
}

// honesty is the more the likelier the best hit is an answer.
func (r *search) honesty() float64 {
	top := r.best(1)
	if len(top) == 0 {
		return 0
	}
	score, words := r.work.score[top[0]], float64(len(r.worth))
	return honestMatch*min(score/max(r.mass(), 1e-9), maxMatch) +
		honestScore*min(score/(2*r.rarest()), maxScore) +
		honestName*r.nameCover(top[0]) +
		honestWords*math.Log(1+words) +
		honestProduct*r.lacksProduct(top[0])*productWords/max(words, 1)
}

// nameCover is the share of a name's words that were asked for, by themselves or by another word.
func (r *search) nameCover(ord int32) float64 {
	asked := map[string]bool{}
	for _, w := range r.req.words {
		if w.stop {
			continue
		}
		asked[w.stem] = true
		for _, other := range r.related[w.stem] {
			asked[other] = true
		}
	}
	for _, m := range r.meanings() {
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
func (r *search) lacksProduct(ord int32) float64 {
	lacks, shares := 0.0, r.granted(r.work.marks[ord])
	for _, w := range r.req.words {
		if w.role == product && !w.stop {
			lacks = max(lacks, 1-shares[r.wishOf[w.stem]])
		}
	}
	return lacks
}
