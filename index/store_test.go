package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/tool"
)

// TestUpdate changes a catalog at random, over and over: what an index finds
// that went through all changes is what a new one finds, to the last bit of the scores.
func TestUpdate(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var docs []Doc
			ix, err := New(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer ix.Close()
			for step := range 25 {
				docs = mutate(r, docs)
				if err := ix.Replace(slices.Clone(docs)); err != nil {
					t.Fatal(err)
				}
				if n := len(ix.store.segments); n > 10 {
					t.Fatalf("step %d: %d segments for %d documents", step, n, len(docs))
				}
				fresh, err := New(docs, nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 12 {
					q := Query{Text: words(r, r.IntN(5)), Limit: 1 + r.IntN(40)}
					if r.IntN(4) == 0 {
						q.Upstream = fmt.Sprint("up", r.IntN(8))
					}
					got, err := ix.Search(t.Context(), q)
					want, wantErr := fresh.Search(t.Context(), q)
					if err != nil || wantErr != nil {
						t.Fatal(err, wantErr)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("step %d, %d documents, %+v: updated index (+) and new one (-):\n%s", step, len(docs), q, diff)
					}
				}
				if err := fresh.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// mutate adds, changes, removes and shuffles documents, now and then all of an upstream.
func mutate(r *rand.Rand, docs []Doc) []Doc {
	docs = slices.Clone(docs)
	up := fmt.Sprint("up", r.IntN(6))
	switch r.IntN(7) {
	case 0, 1, 2:
		for range 1 + r.IntN(30) {
			docs = append(docs, randomDoc(r, up))
		}
	case 3:
		docs = slices.DeleteFunc(docs, func(d Doc) bool { return d.ID.Upstream == up })
	case 4:
		docs = slices.DeleteFunc(docs, func(Doc) bool { return r.IntN(5) == 0 })
	case 5:
		r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	}
	for i := range docs {
		if r.IntN(8) == 0 {
			again := randomDoc(r, up)
			again.ID = docs[i].ID
			docs[i] = again
		}
	}
	return docs
}

func randomDoc(r *rand.Rand, up string) Doc {
	d := Doc{ID: tool.ID{Upstream: up, Name: fmt.Sprint(words(r, 1), r.IntN(60))}, Title: words(r, r.IntN(3)), Description: words(r, r.IntN(20)) + ". " + words(r, r.IntN(20))}
	if r.IntN(3) == 0 {
		d.Wire = words(r, 1) + "-" + words(r, 1)
	}
	for range r.IntN(4) {
		d.Params = append(d.Params, Param{words(r, 1), words(r, 4)})
	}
	return d
}

// words picks some of 400: frequent ones, rare ones, and some that are much alike.
func words(r *rand.Rand, n int) string {
	text := ""
	for i := range n {
		if i > 0 {
			text += " "
		}
		text += []string{"create", "list", "issue", "remove", "repository", "channel", "the", "invoice"}[r.IntN(8)]
		if k := r.IntN(80); k < 50 {
			text += []string{"", "s", "er", "x"}[r.IntN(4)] + string(rune('a'+k%26))
		}
	}
	return text
}

// TestUpdatePaysForChanges counts what is given to bleve: 60 changes of 30
// documents each in a catalog of 2,000 must not be 60 times 2,000.
func TestUpdatePaysForChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	docs := make([]Doc, 2000)
	for i := range docs {
		docs[i] = randomDoc(r, fmt.Sprint("up", i/30))
		docs[i].ID.Name = fmt.Sprint("tool", i)
	}
	ix, err := New(docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	const rounds = 60
	for round := range rounds {
		first := 30 * r.IntN(66)
		for i := first; i < first+30; i++ {
			docs[i].Description = fmt.Sprint("Edition ", round)
		}
		if err := ix.Replace(docs); err != nil {
			t.Fatal(err)
		}
	}
	if made := ix.store.lastKey - len(docs); made < rounds*30 || made > rounds*30*8 {
		t.Errorf("%d documents were indexed for %d that changed", made, rounds*30)
	}
	before := ix.store.lastKey
	if err := ix.Replace(docs); err != nil {
		t.Fatal(err)
	}
	if ix.store.lastKey != before {
		t.Errorf("%d documents were indexed though nothing changed", ix.store.lastKey-before)
	}
}
