package tokens

import (
	"cmp"
	"container/heap"
)

// merge joins the parts of a piece, at first its bytes, in the order of the ranks of what they make together.
type merge struct {
	ranks      map[string]uint32
	piece      string
	prev, next []int // of the part that starts at an offset; a part that was joined to the one before has no next
	pairs      pairs
}

// pair is a part and the next one that make a token together.
type pair struct {
	rank       uint32
	start, end int
}

func newMerge(ranks map[string]uint32, piece string) *merge {
	m := &merge{ranks: ranks, piece: piece, prev: make([]int, len(piece)+1), next: make([]int, len(piece)+1)}
	for i := range m.next {
		m.prev[i], m.next[i] = i-1, i+1
	}
	for i := range len(piece) {
		m.add(i)
	}
	return m
}

// add notes that the part at an offset and the next one make a token, if they do.
func (m *merge) add(start int) {
	if start < 0 || m.next[start] >= len(m.piece) {
		return
	}
	end := m.next[m.next[start]]
	if rank, ok := m.ranks[m.piece[start:end]]; ok {
		heap.Push(&m.pairs, pair{rank, start, end})
	}
}

// count joins parts until no two make a token, and returns how many are left.
func (m *merge) count() int {
	parts := len(m.piece)
	for len(m.pairs) > 0 {
		p := heap.Pop(&m.pairs).(pair)
		middle := m.next[p.start]
		// One of the two parts was joined to another since.
		if middle < 0 || middle >= len(m.piece) || m.next[middle] != p.end {
			continue
		}
		m.next[p.start], m.next[middle], m.prev[p.end] = p.end, -1, p.start
		parts--
		m.add(p.start)
		m.add(m.prev[p.start])
	}
	return parts
}

// pairs is a heap: the lowest rank first, then the first in the text.
type pairs []pair

func (p pairs) Len() int { return len(p) }
func (p pairs) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(p[i].rank, p[j].rank), cmp.Compare(p[i].start, p[j].start)) < 0
}
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pairs) Push(x any)   { *p = append(*p, x.(pair)) }
func (p *pairs) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
