package embeddings

import (
	"cmp"
	"math"
	"slices"

	"sallyport/internal/tool"
)

// vector is a direction with one byte per dimension: an eighth of the size of float64,
// and as good for ranking.
type vector struct {
	values []int8
	norm   float64
}

// newVector quantizes numbers. It fails if there are none, if all are zero, or if one is NaN or infinite.
func newVector(numbers []float64) (vector, error) {
	if len(numbers) == 0 || len(numbers) > maxDim {
		return vector{}, faultf("it sent a vector of %d numbers", len(numbers))
	}
	most := 0.0
	for _, x := range numbers {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return vector{}, faultf("it sent a vector with NaN or infinity")
		}
		most = max(most, math.Abs(x))
	}
	if most < 1e-30 {
		return vector{}, faultf("it sent a vector of zeros")
	}
	v := vector{values: make([]int8, len(numbers))}
	for i, x := range numbers {
		v.values[i] = int8(math.Round(x / most * math.MaxInt8))
	}
	v.norm = math.Sqrt(float64(dot(v.values, v.values)))
	return v, nil
}

// dot multiplies two vectors of one length: at most 8,192 products of 127 by 127.
func dot(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	for ; len(a) >= 8 && len(b) >= 8; a, b = a[8:], b[8:] {
		s0 += int32(a[0])*int32(b[0]) + int32(a[4])*int32(b[4])
		s1 += int32(a[1])*int32(b[1]) + int32(a[5])*int32(b[5])
		s2 += int32(a[2])*int32(b[2]) + int32(a[6])*int32(b[6])
		s3 += int32(a[3])*int32(b[3]) + int32(a[7])*int32(b[7])
	}
	for i, x := range a {
		s0 += int32(x) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

// maxResults is the maximum length of a ranking.
const maxResults = 50

// item is one tool and its vector.
type item struct {
	id tool.ID
	vector
}

// nearest returns the ids of the items with the smallest angle to v, best first, equal
// ones by id. It considers items for which keep is true; a nil keep is true for all.
func nearest(items []item, v vector, keep func(tool.ID) bool) []tool.ID {
	type scored struct {
		id    *tool.ID
		score float64
	}
	all := make([]scored, 0, len(items))
	for i := range items {
		it := &items[i]
		if len(it.values) == len(v.values) && (keep == nil || keep(it.id)) {
			all = append(all, scored{&it.id, float64(dot(it.values, v.values)) / it.norm})
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id.Upstream, b.id.Upstream), cmp.Compare(a.id.Name, b.id.Name))
	})
	ids := make([]tool.ID, min(len(all), maxResults))
	for i := range ids {
		ids[i] = *all[i].id
	}
	return ids
}
