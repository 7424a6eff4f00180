package watch_test

import (
	"testing"

	"sallyport/internal/watch"
)

// TestList: functions are called until they are removed, each of them once, the same one added twice as well.
func TestList(t *testing.T) {
	t.Parallel()
	var list watch.List
	list.Notify()
	first, second := 0, 0
	stop := list.Add(func() { first++ })
	same := func() { second++ }
	stopSame := list.Add(same)
	list.Add(same)
	list.Notify()
	stop()
	stopSame()
	list.Notify()
	if first != 1 || second != 3 {
		t.Errorf("called %d and %d times, want 1 and 3", first, second)
	}
}
