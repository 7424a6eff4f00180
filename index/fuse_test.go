package index_test

import (
	"math"
	"slices"
	"testing"

	"sallyport/index"
	"sallyport/internal/tool"
)

// alike are four tools that fit "notes" nearly as well, and one that fits it barely.
func alike() []index.Doc {
	far := doc("zoo.feed_animals", "Feed the animals of the zoo on a schedule that the keepers can change, and keep a record of it with notes")
	return []index.Doc{
		doc("a.list_notes", "List all notes of the user"),
		doc("b.list_all_notes", "List all notes of one user"),
		doc("c.list_some_notes", "List some notes of the user"),
		doc("d.find_notes", "Find notes"),
		doc("e.send_mail", "Send mail"),
		far,
	}
}

func id(text string) tool.ID {
	parsed, err := tool.ParseID(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

func TestFavourMovesAmongNearEquals(t *testing.T) {
	ix := build(t, alike())
	plain := ids(find(t, ix, index.Query{Text: "list of user notes"}))
	second := plain[1]
	got := ids(find(t, ix, index.Query{Text: "list of user notes", Favour: map[tool.ID]float64{id(second): 1}}))
	if got[0] != second {
		t.Errorf("%s is favoured, and the order is %v", second, got)
	}
	got = ids(find(t, ix, index.Query{Text: "list of user notes", Favour: map[tool.ID]float64{id("zoo.feed_animals"): 1, id("gone.away"): 1}}))
	if got[0] != plain[0] {
		t.Errorf("a poor match came first: %v", got)
	}
	for _, odd := range []float64{0, -5, math.NaN(), math.Inf(-1)} {
		got := ids(find(t, ix, index.Query{Text: "list of user notes", Favour: map[tool.ID]float64{id(second): odd}}))
		if !slices.Equal(got, plain) {
			t.Errorf("favour of %v: %v, want %v", odd, got, plain)
		}
	}
}

func TestAlsoIsFused(t *testing.T) {
	ix := build(t, alike())
	plain := ids(find(t, ix, index.Query{Text: "list of user notes"}))
	if slices.Contains(plain, "e.send_mail") {
		t.Fatalf("the test wants a tool that does not match: %v", plain)
	}
	also := []tool.ID{id("gone.away"), id("e.send_mail"), id(plain[2]), id(plain[0])}
	got := ids(find(t, ix, index.Query{Text: "list of user notes", Also: also}))
	if !slices.Contains(got, "e.send_mail") {
		t.Errorf("what only the other ranking has did not come in: %v", got)
	}
	if got[0] != plain[0] && got[0] != plain[2] {
		t.Errorf("what both rankings have is not first: %v", got)
	}
	got = ids(find(t, ix, index.Query{Text: "list of user notes", Also: also, Upstream: "a"}))
	if !slices.Equal(got, []string{"a.list_notes"}) {
		t.Errorf("the other ranking got past the restriction: %v", got)
	}
	got = ids(find(t, ix, index.Query{Text: "b.list_all_notes", Also: []tool.ID{id("e.send_mail")}}))
	if got[0] != "b.list_all_notes" {
		t.Errorf("an exact name is not first: %v", got)
	}
}

// TestAlsoIsNoEqual: a tool that only the other ranking has, even as its first, stands after those that words match.
func TestAlsoIsNoEqual(t *testing.T) {
	ix := build(t, alike())
	query := index.Query{Text: "list of user notes"}
	want := append(ids(find(t, ix, query)), "e.send_mail")
	query.Also = []tool.ID{id("e.send_mail")}
	if got := ids(find(t, ix, query)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTwinsDoNotFillTheList(t *testing.T) {
	var docs []index.Doc
	for _, up := range []string{"a", "b", "c", "d", "e", "f"} {
		docs = append(docs, doc(up+".search", "Search the web for pages"))
	}
	docs = append(docs, doc("g.find_pages", "Finds pages of the web"))
	got := ids(find(t, build(t, docs), index.Query{Text: "search the web for pages"}))
	if !slices.Contains(got[:4], "g.find_pages") {
		t.Errorf("got %v", got)
	}
}

func TestWhatProvedUsefulIsAnAnswer(t *testing.T) {
	ix := build(t, few())
	for text, agreed := range map[string]bool{
		"githb sequence a genome":      false,
		"list the birds of the garden": true,
	} {
		res := find(t, ix, index.Query{Text: text})
		if !res.Weak || len(res.Hits) == 0 {
			t.Fatalf("%q: the test wants a poor hit: %v, weak %t", text, ids(res), res.Weak)
		}
		first := res.Hits[0].ID
		for favour, want := range map[float64]bool{0.2: true, 0.9: false, math.NaN(): true} {
			if res := find(t, ix, index.Query{Text: text, Favour: map[tool.ID]float64{first: favour}}); res.Weak != want {
				t.Errorf("%q: favoured by %v, weak %t", text, favour, res.Weak)
			}
		}
		if res := find(t, ix, index.Query{Text: text, Also: []tool.ID{first}}); res.Weak == agreed {
			t.Errorf("%q: another ranking has %s first too, weak %t", text, first, res.Weak)
		}
	}
}

func TestUpstreamsWhereNothingFits(t *testing.T) {
	ix := build(t, few())
	res := find(t, ix, index.Query{Text: "githb sequence a genome"})
	if !res.Weak || !slices.Contains(res.Upstreams, "github") {
		t.Errorf("weak %t, upstreams %v", res.Weak, res.Upstreams)
	}
	if res := find(t, ix, index.Query{Text: "create issue"}); res.Upstreams != nil {
		t.Errorf("all is well, and upstreams are named: %v", res.Upstreams)
	}
}

// TestRestrictedIsJudgedByItself: what another upstream has makes no answer of what this one has.
func TestRestrictedIsJudgedByItself(t *testing.T) {
	docs := append(few(), doc("tracker.create_issue", "Create an issue"), doc("tracker.post_message", "Post a message to a channel"))
	ix := build(t, docs)
	for _, text := range []string{"create an issue", "post text to a channel as a message", "create an issue and post a message to a channel"} {
		for upstream, weak := range map[string]bool{"tracker": false, "files": true} {
			if res := find(t, ix, index.Query{Text: text, Upstream: upstream}); res.Weak != weak {
				t.Errorf("%s in %s: weak is %v, hits %v", text, upstream, res.Weak, res.Hits)
			}
		}
	}
}
