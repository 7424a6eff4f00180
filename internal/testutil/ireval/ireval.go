// Package ireval scores rankings of tools against judged queries: by the rank of the tools that a query needs. [Read]
// and [ReadCatalog] read the query sets that this project measures its search with; bench/search and the tests of
// index share it, so that both use the same metrics.
package ireval

import (
	"cmp"
	"math"
	"slices"
)

// Query is one query and the tools that answer it.
type Query struct {
	ID   string `json:"id"`
	Text string `json:"query"`
	// Gold are the required tools, by their judged ids; empty means that none fits.
	Gold []string `json:"gold"`
	// Alts holds equally correct alternatives of a gold tool.
	Alts map[string][]string `json:"alts"`
	// Grades holds the gain of a gold tool, if it is not 1.
	Grades map[string]float64 `json:"grades"`
	Kind   string             `json:"kind"`
	Style  string             `json:"style"`
	// Task groups the queries of one task, in sets with tasks.
	Task string `json:"group"`
	// Group is "set/kind", over which scores are averaged.
	Group string `json:"-"`
	// Tuned means that weights were tuned on this query: the 1st, 3rd ... of its file. The others are for validation.
	Tuned bool `json:"-"`
	// Apart means that it is for validation, and that no tuning query shares its task or one of its tools.
	Apart bool `json:"-"`
}

// Any reports whether one gold tool suffices: the gold of a route query is whatever the task behind it needs.
func (q Query) Any() bool { return q.Kind == "route" }

// Scores are the metrics of one ranking, each 0 to 1, or their means over several.
type Scores struct {
	// Recall is the share of the gold tools among the first 1, 3, 5 and 10; an
	// answer that is as right as two of them counts for both.
	Recall1  float64 `json:"recall@1"`
	Recall3  float64 `json:"recall@3"`
	Recall5  float64 `json:"recall@5"`
	Recall10 float64 `json:"recall@10"`
	// NDCG10 gives a gain for each gold tool at the rank of the first answer that counts for it and for no other.
	NDCG10 float64 `json:"ndcg@10"`
	// MRR is the reciprocal rank of the first right answer among the first 10, or 0.
	MRR float64 `json:"mrr"`
	// Hit is whether any gold tool is among the first 3 and 5.
	Hit3 float64 `json:"hit@3"`
	Hit5 float64 `json:"hit@5"`
}

// Metrics returns the names of the fields of Scores, in order.
func Metrics() []string {
	return []string{"recall@1", "recall@3", "recall@5", "recall@10", "ndcg@10", "mrr", "hit@3", "hit@5"}
}

// Values returns the fields in the order of Metrics.
func (s Scores) Values() []float64 {
	return []float64{s.Recall1, s.Recall3, s.Recall5, s.Recall10, s.NDCG10, s.MRR, s.Hit3, s.Hit5}
}

// Score scores the judged ids of a ranking, best first, for a query that has gold tools.
func Score(q Query, ranked []string) Scores {
	return Scores{
		Recall1: q.recall(ranked, 1), Recall3: q.recall(ranked, 3), Recall5: q.recall(ranked, 5), Recall10: q.recall(ranked, 10),
		NDCG10: q.ndcg(ranked, 10), MRR: q.reciprocal(ranked, 10),
		Hit3: math.Ceil(q.recall(ranked, 3)), Hit5: math.Ceil(q.recall(ranked, 5)),
	}
}

// Mean returns the mean of scores; zero for none.
func Mean(all []Scores) Scores {
	var sum [8]float64
	for _, s := range all {
		for i, v := range s.Values() {
			sum[i] += v / float64(len(all))
		}
	}
	return Scores{sum[0], sum[1], sum[2], sum[3], sum[4], sum[5], sum[6], sum[7]}
}

// Answers reports whether a tool is one of the gold tools, or an alternative.
func (q Query) Answers(id string) bool {
	return slices.ContainsFunc(q.Gold, func(gold string) bool { return q.answersFor(id, gold) })
}

func (q Query) answersFor(id, gold string) bool {
	return id == gold || slices.Contains(q.Alts[gold], id)
}

func (q Query) recall(ranked []string, k int) float64 {
	found := 0
	for _, gold := range q.Gold {
		if slices.ContainsFunc(first(ranked, k), func(id string) bool { return q.answersFor(id, gold) }) {
			found++
		}
	}
	return float64(found) / float64(max(1, len(q.Gold)))
}

func (q Query) reciprocal(ranked []string, k int) float64 {
	if at := slices.IndexFunc(first(ranked, k), q.Answers); at >= 0 {
		return 1 / float64(at+1)
	}
	return 0
}

func (q Query) ndcg(ranked []string, k int) float64 {
	got, ideal := 0.0, 0.0
	missing := slices.Clone(q.Gold)
	for i, id := range first(ranked, k) {
		at := slices.IndexFunc(missing, func(gold string) bool { return q.answersFor(id, gold) })
		if at >= 0 {
			got += q.gain(missing[at]) * discount(i)
			missing = slices.Delete(missing, at, at+1)
		}
	}
	gains := make([]float64, len(q.Gold))
	for i, gold := range q.Gold {
		gains[i] = q.gain(gold)
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, gain := range gains[:min(k, len(gains))] {
		ideal += gain * discount(i)
	}
	if ideal == 0 {
		return 0
	}
	return got / ideal
}

func (q Query) gain(gold string) float64 { return cmp.Or(q.Grades[gold], 1) }

// discount is the factor of a gain at index i, from 0.
func discount(i int) float64 { return 1 / math.Log2(float64(i+2)) }

func first(ranked []string, k int) []string { return ranked[:min(k, len(ranked))] }

// SignTest returns the two-sided p-value of the sign test; ties are left out.
func SignTest(wins, losses int) float64 {
	n, less := wins+losses, min(wins, losses)
	p := 0.0
	for i := range less + 1 {
		p += math.Exp(logChoose(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*p)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
