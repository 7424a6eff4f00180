package runlog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/store"
)

// long is a log of so many passes of a loop, two events each, after its first event.
func long(t *testing.T, l *runlog.Logs, id string, passes int) *runlog.Writer {
	t.Helper()
	w := create(t, l, id)
	output := json.RawMessage(`"` + strings.Repeat("x", 100) + `"`)
	for i := range passes {
		path := fmt.Sprintf("each[%d].s", i)
		add(t, w, runlog.Event{Kind: runlog.Began, Path: path}, runlog.Event{Kind: runlog.Ended, Path: path, Output: output})
	}
	return w
}

// page are the first events after one.
func page(t *testing.T, l *runlog.Logs, id string, after, most int) (events []runlog.Event) {
	t.Helper()
	for e, err := range l.Read(t.Context(), id, after) {
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, e); len(events) == most {
			break
		}
	}
	return events
}

// bytesAllocated is how many bytes something takes in all.
func bytesAllocated(do func()) uint64 {
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&now)
	return now.TotalAlloc - before.TotalAlloc
}

// A page takes what its own events take, wherever in a log it is, once something has been read there.
func TestPagesOfLongLogs(t *testing.T) { //nolint:paralleltest // it looks at the whole heap
	const passes, size = 20_000, 100
	l := logs(t, store.Memory())
	w := long(t, l, "r-1", passes)
	seen := 0
	for seen < 2*passes+1 {
		for _, e := range page(t, l, "r-1", seen, 1000) {
			if seen++; e.N != seen {
				t.Fatalf("event %d is told as the %d.", seen, e.N)
			}
		}
	}
	first := bytesAllocated(func() { page(t, l, "r-1", 0, size) })
	for _, after := range []int{passes / 2, passes, 2*passes - size} {
		var events []runlog.Event
		took := bytesAllocated(func() { events = page(t, l, "r-1", after, size) })
		if n := len(events); n != size || events[0].N != after+1 || events[n-1].N != after+size {
			t.Errorf("%d events after %d", n, after)
		}
		if took > 20*first {
			t.Errorf("a page after %d events takes %d KiB, the first %d KiB", after, took>>10, first>>10)
		}
	}
	add(t, w, event(runlog.Over, ""))
	if got := page(t, l, "r-1", 2*passes+1, 10); len(got) != 1 || got[0].Kind != runlog.Over {
		t.Errorf("%+v", got)
	}
	if last, err := l.Last(t.Context(), "r-1"); err != nil || last.Kind != runlog.Over {
		t.Errorf("%+v, %v", last, err)
	}
}

// What was found in a log does not count for another of the same name.
func TestPagesOfAnotherLog(t *testing.T) {
	t.Parallel()
	s := store.Memory()
	l, other := logs(t, s), logs(t, s)
	long(t, l, "r-1", 1000)
	page(t, l, "r-1", 0, 2001)
	if err := other.Remove(t.Context(), "r-1"); err != nil {
		t.Fatal(err)
	}
	if got := page(t, l, "r-1", 1500, 10); got != nil {
		t.Errorf("%d events of a run that is removed", len(got))
	}
	w := create(t, other, "r-1")
	for range 600 { // one after the other, as the marks of the log before were not
		add(t, w, event(runlog.Began, "a"), event(runlog.Ended, "a"), event(runlog.Ended, "b"))
	}
	if got := page(t, l, "r-1", 1500, 1000); len(got) != 301 || got[0].N != 1501 || got[0].Path != "b" || got[1].Path != "a" {
		t.Errorf("%d events: %+v", len(got), got[0])
	}
}

// What is left out is not read: a page can be had of a log that is damaged elsewhere.
func TestPageAfterDamage(t *testing.T) {
	t.Parallel()
	s := store.Memory()
	l := logs(t, s)
	raw, err := s.Log("runs", store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []string{`{"kind":"created"}` + "\n", `{"kind":"beg` + "\n" + `{"kind":"ended","path":"a"}` + "\n", "<{\"kind\":", ">\"over\"}\n"} {
		if _, err := raw.Append(t.Context(), store.Key{"r-1"}, []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	if got := paths(t, l, "r-1", 2); len(got) != 2 || got[0] != "3a" {
		t.Errorf("%q", got)
	}
	for _, err := range l.Read(t.Context(), "r-1", 1) {
		if !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("error %v", err)
		}
	}
	if last, err := l.Last(t.Context(), "r-1"); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%+v, %v", last, err)
	}
}
