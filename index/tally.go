package index

import (
	"cmp"
	"slices"
)

// tally counts the documents that have each of some terms, and keeps those in
// their order that any document has.
type tally struct {
	docs   []int32  // by number of the term
	sorted []uint32 // the terms when list was called last
	fresh  []uint32 // those that came since; some may be among the sorted
	texts  []string // of sorted, nil if that has changed
}

// add counts the terms of one more document.
func (t *tally) add(terms []uint32) {
	for _, id := range terms {
		if int(id) >= len(t.docs) {
			t.docs = append(t.docs, make([]int32, int(id)+1-len(t.docs))...)
		}
		if t.docs[id]++; t.docs[id] == 1 {
			t.fresh, t.texts = append(t.fresh, id), nil
		}
	}
}

// drop takes back what was added.
func (t *tally) drop(terms []uint32) {
	for _, id := range terms {
		if t.docs[id]--; t.docs[id] == 0 {
			t.texts = nil
		}
	}
}

// list returns the terms that any document has in their order. The result does not change.
func (t *tally) list(texts []string) []string {
	if t.texts != nil {
		return t.texts
	}
	order := func(a, b uint32) int { return cmp.Compare(texts[a], texts[b]) }
	slices.SortFunc(t.fresh, order)
	t.sorted = merge(t.sorted, t.fresh, order)
	t.sorted = slices.DeleteFunc(slices.Compact(t.sorted), func(id uint32) bool { return t.docs[id] == 0 })
	t.fresh, t.texts = t.fresh[:0], make([]string, len(t.sorted))
	for i, id := range t.sorted {
		t.texts[i] = texts[id]
	}
	return t.texts
}

// merge makes one sorted list of two.
func merge(a, b []uint32, order func(a, b uint32) int) []uint32 {
	all := make([]uint32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if order(a[0], b[0]) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}
