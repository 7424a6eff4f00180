package index

import (
	"cmp"
	"slices"
)

// termCounts counts the documents of each term, and lists the terms that any document
// has, sorted.
type termCounts struct {
	docs     []int32  // number of documents, by term number
	sorted   []uint32 // the terms at the last call of list
	unsorted []uint32 // terms added since; may overlap with sorted
	texts    []string // cached result of list, nil if outdated
}

// add counts the terms of one more document.
func (t *termCounts) add(terms []uint32) {
	for _, id := range terms {
		if int(id) >= len(t.docs) {
			t.docs = append(t.docs, make([]int32, int(id)+1-len(t.docs))...)
		}
		if t.docs[id]++; t.docs[id] == 1 {
			t.unsorted, t.texts = append(t.unsorted, id), nil
		}
	}
}

// drop removes the terms of a document that was added.
func (t *termCounts) drop(terms []uint32) {
	for _, id := range terms {
		if t.docs[id]--; t.docs[id] == 0 {
			t.texts = nil
		}
	}
}

// list returns the terms that any document has, sorted. Later calls do not modify the result.
func (t *termCounts) list(texts []string) []string {
	if t.texts != nil {
		return t.texts
	}
	order := func(a, b uint32) int { return cmp.Compare(texts[a], texts[b]) }
	slices.SortFunc(t.unsorted, order)
	t.sorted = merge(t.sorted, t.unsorted, order)
	t.sorted = slices.DeleteFunc(slices.Compact(t.sorted), func(id uint32) bool { return t.docs[id] == 0 })
	t.unsorted, t.texts = t.unsorted[:0], make([]string, len(t.sorted))
	for i, id := range t.sorted {
		t.texts[i] = texts[id]
	}
	return t.texts
}

// merge merges two sorted lists.
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
