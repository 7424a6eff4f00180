package index

import (
	"cmp"
	"slices"

	"sallyport/internal/tool"
)

const (
	// AlsoWeight is the usual weight of another ranking relative to the own one: a weak model costs little, see
	// bench/results/ranking-steps.txt.
	AlsoWeight = 0.3
	// fuseRank damps reciprocal ranks: the larger it is, the less ranks differ.
	fuseRank = 10
	// maxAlso is how many entries of the other ranking are read.
	maxAlso = 100
	// favourBoost is the boost of a favoured document, as a share of the best score: it
	// passes documents that are nearly as good, but never one that is far better.
	favourBoost = 0.6
)

// fuse merges the ranking with another by reciprocal rank. It adds documents that
// only the other ranking has.
func (r *search) fuse(also []tool.ID, weight float64) {
	if len(also) == 0 {
		return
	}
	weight = cmp.Or(weight, AlsoWeight)
	own := r.best(len(r.work.hit))
	worth := make(map[int32]float64, len(own)+len(also))
	for i, ord := range own {
		worth[ord] += 1 / float64(fuseRank+i+1)
	}
	for i, id := range also[:min(len(also), maxAlso)] {
		if ord, ok := r.placeOf(id); ok {
			worth[ord] += weight / float64(fuseRank+i+1)
		}
	}
	top := r.top()
	for ord, sum := range worth {
		r.boost(ord, top*sum*(fuseRank+1)/(1+weight)-r.work.score[ord])
	}
}

// favour boosts documents that proved useful for similar queries.
func (r *search) favour(proved map[tool.ID]float64) {
	top := r.top()
	for id, share := range proved {
		if ord, ok := r.placeOf(id); ok && share > 0 {
			r.boost(ord, favourBoost*top*min(share, 1))
		}
	}
}

// top returns the best score, or 1 without hits.
func (r *search) top() float64 {
	top := 0.0
	for _, ord := range r.work.hit {
		top = max(top, r.work.score[ord])
	}
	return cmp.Or(top, 1)
}

// boost adds by to the score of a document. A document without a score becomes a hit if it is in scope.
func (r *search) boost(ord int32, by float64) {
	if by == 0 || !r.inScope(ord) {
		return
	}
	if r.work.score[ord] == 0 {
		r.work.hit = append(r.work.hit, ord)
	}
	r.work.score[ord] += by
}

// placeOf returns the first document with id.
func (s *snapshot) placeOf(id tool.ID) (int32, bool) {
	ord, _ := slices.BinarySearchFunc(s.docs, Doc{ID: id}, func(a, b Doc) int { return compareDocs(&a, &b) })
	return int32(ord), ord < len(s.docs) && s.docs[ord].ID == id
}
