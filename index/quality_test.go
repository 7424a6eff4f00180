package index

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/internal/tool"
)

// retrievalDir holds judged sets of queries; see the READMEs in it.
const retrievalDir = "../../shared/retrieval"

// judged is one query and the tools that answer it.
type judged struct {
	ID     string              `json:"id"`
	Query  string              `json:"query"`
	Gold   []string            `json:"gold"`
	Alts   map[string][]string `json:"alts"`
	Grades map[string]float64  `json:"grades"`
	Kind   string              `json:"kind"`
}

// TestQuality holds ranking to floors a little under what it reached when they
// were written: nDCG@10 and recall@5, or for routes hit@3 and hit@5. With -v it
// prints what it reaches now; the weights were tuned on the even queries only.
func TestQuality(t *testing.T) {
	floors := map[string][2]float64{
		"livemcp/step":        {.79, .86},
		"livemcp/route":       {.55, .60},
		"livemcp/task":        {.43, .41},
		"bfcl/pooled":         {.76, .80},
		"mcpproxygold/golden": {.77, .86},
	}
	for _, set := range []string{"livemcp", "bfcl", "mcpproxygold"} {
		docs, queries := readSet(t, set)
		ix, err := New(docs, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer ix.Close()
		find := func(text string) []string {
			res, err := ix.Search(t.Context(), Query{Text: text, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			return names(res)
		}
		for kind, m := range evaluate(find, queries) {
			t.Logf("%-14s %-8s all %s  even (tuned) %s  odd (held out) %s", set, kind, m[0], m[1], m[2])
			a, b := m[0].mean()
			if floor := floors[set+"/"+kind]; a < floor[0] || b < floor[1] {
				t.Errorf("%s %s: %.3f/%.3f is below the floor %.3f/%.3f", set, kind, a, b, floor[0], floor[1])
			}
		}
	}
}

func names(res Results) []string {
	var ids []string
	for _, h := range res.Hits {
		ids = append(ids, h.ID.Name)
	}
	return ids
}

// measure sums up two metrics over queries.
type measure struct {
	n    int
	a, b float64
}

func (m *measure) add(a, b float64) { m.n++; m.a += a; m.b += b }

func (m measure) mean() (float64, float64) {
	n := float64(max(m.n, 1))
	return m.a / n, m.b / n
}

func (m measure) String() string {
	a, b := m.mean()
	return fmt.Sprintf("%.3f/%.3f (%d)", a, b, m.n)
}

// evaluate returns, for each kind of query, the measures of all, of the even and of the odd ones.
func evaluate(find func(string) []string, queries []judged) map[string][3]measure {
	found := map[string][3]measure{}
	for i, q := range queries {
		hits := find(q.Query)
		a, b := ndcg(q, hits, 10), recall(q, hits, 5)
		kind := q.Kind
		switch {
		case kind == "route": // gold is all tools of the task behind it: any of them is a hit
			a, b = anyHit(q, hits, 3), anyHit(q, hits, 5)
		case q.Gold != nil && kind != "step" && kind != "task" && kind != "golden":
			kind = "pooled"
		}
		m := found[kind]
		m[0].add(a, b)
		m[1+i%2].add(a, b)
		found[kind] = m
	}
	return found
}

// answers returns the gold tool that id stands for and that is still missing, or "".
func answers(q judged, id string, seen map[string]bool) string {
	for _, g := range q.Gold {
		if !seen[g] && (g == id || slices.Contains(q.Alts[g], id)) {
			return g
		}
	}
	return ""
}

func ndcg(q judged, hits []string, k int) float64 {
	got, ideal, seen := 0.0, 0.0, map[string]bool{}
	for i, id := range hits[:min(k, len(hits))] {
		if g := answers(q, id, seen); g != "" {
			seen[g] = true
			got += q.gain(g) / math.Log2(float64(i+2))
		}
	}
	gains := make([]float64, len(q.Gold))
	for i, g := range q.Gold {
		gains[i] = q.gain(g)
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, g := range gains[:min(k, len(gains))] {
		ideal += g / math.Log2(float64(i+2))
	}
	return got / ideal
}

func (q judged) gain(id string) float64 { return cmp.Or(q.Grades[id], 1) }

func recall(q judged, hits []string, k int) float64 {
	seen := map[string]bool{}
	for _, id := range hits[:min(k, len(hits))] {
		if g := answers(q, id, seen); g != "" {
			seen[g] = true
		}
	}
	return float64(len(seen)) / float64(len(q.Gold))
}

func anyHit(q judged, hits []string, k int) float64 {
	return math.Ceil(recall(q, hits, k))
}

// readSet reads one judged set; the ids of its tools become the names, since only they are unique.
func readSet(t testing.TB, set string) ([]Doc, []judged) {
	t.Helper()
	var docs []Doc
	var queries []judged
	readLines(t, filepath.Join(retrievalDir, set, "tools.jsonl"), func(line []byte) error {
		var row struct {
			ID, Server, Name, Description string
			Schema                        json.RawMessage `json:"input_schema"`
			Title                         string          `json:"server_title"`
			About                         string          `json:"server_description"`
		}
		err := json.Unmarshal(line, &row)
		docs = append(docs, FromTool(tool.Tool{ID: tool.ID{Upstream: row.Server, Name: row.ID}, Wire: row.Name,
			Description: row.Description, Input: row.Schema}, row.Title+"\n"+row.About))
		return err
	})
	readLines(t, filepath.Join(retrievalDir, set, "queries.jsonl"), func(line []byte) error {
		var q judged
		err := json.Unmarshal(line, &q)
		queries = append(queries, q)
		return err
	})
	return docs, queries
}

func readLines(t testing.TB, path string, each func([]byte) error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("no judged queries here: %v", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if err := each(lines.Bytes()); err != nil {
			t.Fatalf("read %s: %v", path, err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}
