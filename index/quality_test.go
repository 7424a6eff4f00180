package index

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/testutil/ireval"
)

// retrievalDir holds judged sets of queries; see the READMEs in it.
const retrievalDir = "../../shared/retrieval"

// TestQuality holds ranking to floors a little under what it reached when they
// were written: nDCG@10 and recall@5, or for routes hit@3 and hit@5. With -v it
// prints what it reaches now; the weights were tuned on the odd queries only, the
// 1st, 3rd ... of a file.
func TestQuality(t *testing.T) {
	floors := map[string][2]float64{
		"livemcp/step":        {.81, .90},
		"livemcp/route":       {.59, .645},
		"livemcp/task":        {.51, .49},
		"bfcl/pooled":         {.82, .89},
		"mcpproxygold/golden": {.87, .92},
	}
	for _, set := range ireval.Names() {
		for group, m := range evaluate(t, set) {
			t.Logf("%-20s all %s  odd (tuned) %s  even (held out) %s", group, brief(group, m[0]), brief(group, m[1]), brief(group, m[2]))
			a, b := bars(group, m[0])
			if floor := floors[group]; a < floor[0] || b < floor[1] {
				t.Errorf("%s: %.3f/%.3f is below the floor %.3f/%.3f", group, a, b, floor[0], floor[1])
			}
		}
	}
}

// evaluate returns, for each group of a set's queries, the scores of all, of those to tune by and of those to check with.
func evaluate(t *testing.T, set string) map[string][3][]ireval.Scores {
	t.Helper()
	docs, queries, judged := readSet(t, set)
	ix, err := New(docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	found := map[string][3][]ireval.Scores{}
	for i, q := range queries {
		res, err := ix.Search(t.Context(), Query{Text: q.Text, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		scores := ireval.Score(q, judged(res))
		m := found[q.Group]
		m[0] = append(m[0], scores)
		m[1+i%2] = append(m[1+i%2], scores)
		found[q.Group] = m
	}
	return found
}

// bars returns the means of the two metrics that a group's floors are set in.
func bars(group string, scores []ireval.Scores) (float64, float64) {
	mean := ireval.Mean(scores)
	if strings.HasSuffix(group, "/route") { // gold is all tools of the task behind it: any of them is a hit
		return mean.Hit3, mean.Hit5
	}
	return mean.NDCG10, mean.Recall5
}

func brief(group string, scores []ireval.Scores) string {
	a, b := bars(group, scores)
	return fmt.Sprintf("%.3f/%.3f (%d)", a, b, len(scores))
}

// readSet reads one judged set, and returns what turns results into the ids that its queries use.
func readSet(t testing.TB, set string) ([]Doc, []ireval.Query, func(Results) []string) {
	t.Helper()
	s, err := ireval.Read(retrievalDir, set)
	if errors.Is(err, ireval.ErrNoData) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	docs := make([]Doc, len(s.Entries))
	for i, e := range s.Entries {
		docs[i] = FromTool(e.Tool, e.About)
	}
	return docs, s.Queries, func(res Results) []string {
		var ids []string
		for _, h := range res.Hits {
			ids = append(ids, s.JudgedID(h.ID))
		}
		return ids
	}
}
