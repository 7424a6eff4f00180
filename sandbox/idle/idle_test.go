package idle_test

import (
	"slices"
	"testing"

	"sallyport/sandbox/idle"
)

func TestTake(t *testing.T) {
	var s idle.Set[string, int]
	for _, v := range []int{11, 32, 31, 12, 33} {
		s.Put("a", v)
	}
	s.Put("b", 99)
	tens := func(v int) int { return v / 10 }
	var got []int
	for v, ok := s.Take("a", tens); ok; v, ok = s.Take("a", tens) {
		got = append(got, v)
	}
	if want := []int{33, 31, 32, 12, 11}; !slices.Equal(got, want) {
		t.Errorf("taken %v, want %v", got, want)
	}
	if n, total := s.Count("a"); n != 0 || total != 1 {
		t.Errorf("%d of a, %d in total; want 0 and 1", n, total)
	}
}

func TestRemove(t *testing.T) {
	var s idle.Set[string, int]
	for _, v := range []int{1, 2, 3, 4} {
		s.Put([]string{"even", "odd"}[v%2], v)
	}
	removed := s.Remove(func(v int) bool { return v > 2 })
	slices.Sort(removed)
	if !slices.Equal(removed, []int{3, 4}) {
		t.Errorf("removed %v", removed)
	}
	left := map[string]int{}
	s.Each(func(key string, v int) { left[key] += v })
	if len(left) != 2 || left["odd"] != 1 || left["even"] != 2 {
		t.Errorf("left %v", left)
	}
	if n, total := s.Count("odd"); n != 1 || total != 2 {
		t.Errorf("%d of odd, %d in total; want 1 and 2", n, total)
	}
}
