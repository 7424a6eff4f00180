package gateway_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/feedback"
	"sallyport/index"
	"sallyport/internal/testutil/ireval"
	"sallyport/internal/tool"
)

// classroom has the catalogue's judged queries, an index of its tools, and a store that learns.
type classroom struct {
	*ireval.Set
	ix    *index.Index
	store *feedback.Store
	ids   map[string]tool.ID
}

func newClassroom(t *testing.T) *classroom {
	t.Helper()
	set, err := ireval.ReadCatalog("../../shared/catalog", "../bench/search/queries.jsonl")
	if errors.Is(err, ireval.ErrNoData) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &classroom{Set: set, ids: map[string]tool.ID{}}
	docs := make([]index.Doc, len(set.Entries))
	for i, e := range set.Entries {
		docs[i] = index.FromTool(e.Tool, e.About)
		c.ids[e.Judged] = e.Tool.ID
	}
	if c.ix, err = index.New(docs, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.ix.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func oneDigest(tool.ID) string { return "00112233445566778899aabbccddeeff" }

// search returns the judged ids and the ids of the first hits.
func (c *classroom) search(t *testing.T, text string, limit int) (judged []string, ids []tool.ID) {
	t.Helper()
	res, err := c.ix.Search(t.Context(), index.Query{Text: text, Limit: limit, Favour: c.store.Boost("", c.ix.Weigh(t.Context(), text), oneDigest)})
	if err != nil {
		t.Fatal(err)
	}
	for _, hit := range res.Hits {
		judged, ids = append(judged, c.JudgedID(hit.ID)), append(ids, hit.ID)
	}
	return judged, ids
}

// use is what a model does with a query, some times: it searches, and calls what is right.
func (c *classroom) use(t *testing.T, q ireval.Query, times int) {
	t.Helper()
	for i := range times {
		who := feedback.Caller{Session: fmt.Sprint(q.ID, i)}
		_, shown := c.search(t, q.Text, 8)
		c.store.RecordSearch(who, c.ix.Weigh(t.Context(), q.Text), shown)
		for _, gold := range q.Gold {
			id := c.ids[gold]
			if at := slices.IndexFunc(shown, func(id tool.ID) bool { return id == c.ids[gold] || slices.Contains(q.Alts[gold], c.JudgedID(id)) }); at >= 0 {
				id = shown[at]
			}
			c.store.RecordCall(who, "e", id, oneDigest(id))
		}
		time.Sleep(time.Hour) // by then it is clear that nothing that was shown was wanted
	}
}

func (c *classroom) score(t *testing.T, queries []ireval.Query) ireval.Scores {
	t.Helper()
	all := make([]ireval.Scores, len(queries))
	for i, q := range queries {
		ranked, _ := c.search(t, q.Text, 10)
		all[i] = ireval.Score(q, ranked)
	}
	return ireval.Mean(all)
}

// TestClicksPay teaches with one query of each tool that several ask for (the last
// of the file, in which words are farthest from the tools' own), and measures at
// these, at these with a word less, at the other queries of these tools, and at
// those of all others. One stray call for each query must do next to no harm.
func TestClicksPay(t *testing.T) {
	c := newClassroom(t)
	synctest.Test(t, c.lesson)
}

func (c *classroom) lesson(t *testing.T) {
	c.store = feedback.New(nil, nil)
	defer func() { c.store.Close() }()
	groups := c.groups()
	before := c.scores(t, groups)
	for _, test := range []struct {
		name  string
		teach func(q ireval.Query)
		least map[string]float64 // change of nDCG@10
	}{
		{"5 uses", func(q ireval.Query) { c.use(t, q, 5) }, map[string]float64{"taught": .1, "a word less": .05, "like them": -.005, "others": -.005}},
		{"a stray call", func(q ireval.Query) { c.stray(t, q) }, map[string]float64{"taught": -.02, "a word less": -.02, "like them": -.005, "others": -.005}},
	} {
		c.store.Close()
		c.store = feedback.New(nil, nil)
		for _, q := range groups["taught"] {
			test.teach(q)
		}
		after := c.scores(t, groups)
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			was, is := before[group], after[group]
			t.Logf("%-12s %-11s (%d): nDCG@10 %.3f -> %.3f, recall@5 %.3f -> %.3f", test.name, group, len(groups[group]), was.NDCG10, is.NDCG10, was.Recall5, is.Recall5)
			if is.NDCG10-was.NDCG10 < test.least[group] {
				t.Errorf("%s, %s: nDCG@10 changes by %.3f, want %.3f at least", test.name, group, is.NDCG10-was.NDCG10, test.least[group])
			}
		}
	}
}

// stray calls what stands third in an answer and is not right.
func (c *classroom) stray(t *testing.T, q ireval.Query) {
	t.Helper()
	judged, shown := c.search(t, q.Text, 8)
	who := feedback.Caller{Session: "stray " + q.ID}
	for i := 2; i < len(shown); i++ {
		if !q.Answers(judged[i]) {
			c.store.RecordSearch(who, c.ix.Weigh(t.Context(), q.Text), shown)
			c.store.RecordCall(who, "e", shown[i], oneDigest(shown[i]))
			return
		}
	}
}

func (c *classroom) scores(t *testing.T, groups map[string][]ireval.Query) map[string]ireval.Scores {
	t.Helper()
	all := map[string]ireval.Scores{}
	for name, queries := range groups {
		all[name] = c.score(t, queries)
	}
	return all
}

// groups parts the queries as TestClicksPay needs them.
func (c *classroom) groups() map[string][]ireval.Query {
	groups, count, known := map[string][]ireval.Query{}, map[string]int{}, map[string]bool{}
	for _, q := range c.Queries {
		for _, gold := range q.Gold {
			count[gold]++
		}
	}
	add := func(group string, q ireval.Query) { groups[group] = append(groups[group], q) }
	for _, q := range slices.Backward(c.Queries) {
		switch {
		case len(q.Gold) == 0:
		case slices.ContainsFunc(q.Gold, func(gold string) bool { return known[gold] }):
			add("like them", q)
		case slices.ContainsFunc(q.Gold, func(gold string) bool { return count[gold] > 1 }):
			for _, gold := range q.Gold {
				known[gold] = true
			}
			add("taught", q)
			words := strings.Fields(q.Text)
			q.Text = strings.Join(words[:max(1, len(words)-1)], " ")
			add("a word less", q)
		default:
			add("others", q)
		}
	}
	return groups
}
