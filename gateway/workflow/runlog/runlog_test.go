package runlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/store"
)

func logs(t testing.TB, s *store.Store) *runlog.Logs {
	t.Helper()
	l, err := runlog.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func create(t testing.TB, l *runlog.Logs, id string) *runlog.Writer {
	t.Helper()
	w, err := l.Create(t.Context(), runlog.Run{ID: id, Workflow: "w", Status: runlog.Running}, event(runlog.Created, ""))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func event(kind runlog.EventKind, path string) runlog.Event {
	return runlog.Event{Kind: kind, Path: path}
}

func add(t testing.TB, w *runlog.Writer, events ...runlog.Event) {
	t.Helper()
	if err := w.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

// paths are those of the events of a run, each with its number.
func paths(t *testing.T, l *runlog.Logs, id string, after int) (found []string) {
	t.Helper()
	for e, err := range l.Read(t.Context(), id, after) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprint(e.N, e.Path))
	}
	return found
}

func TestReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	l := logs(t, store.Memory())
	w := create(t, l, "r-1")
	full := runlog.Event{
		Kind: runlog.Ended, Path: "a[3].b", Time: time.Now().UTC().Truncate(0), Attempt: 2, Outcome: "failed", Output: json.RawMessage(`{"a":"\u2028<"}`),
		Error: &runlog.Fault{Kind: "timeout", Message: "m"}, Pending: &runlog.Pending{For: "form", Form: json.RawMessage(`{}`)},
	}
	add(t, w, full)
	add(t, w, event(runlog.Began, "x"), event(runlog.Ended, "x"))
	if got := paths(t, l, "r-1", 0); !slices.Equal(got, []string{"1", "2a[3].b", "3x", "4x"}) {
		t.Errorf("%q", got)
	}
	if got := paths(t, l, "r-1", 2); !slices.Equal(got, []string{"3x", "4x"}) {
		t.Errorf("after 2: %q", got)
	}
	for e, err := range l.Read(t.Context(), "r-1", 1) {
		full.N = 2
		got, want := mustJSON(t, e), mustJSON(t, full)
		if err != nil || got != want {
			t.Errorf("got %s, want %s: %v", got, want, err)
		}
		break
	}
	if got := paths(t, l, "r-2", 0); got != nil {
		t.Errorf("of a run that there is not: %q", got)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTake: of two who have taken a run one can write, the other learns of it and writes nothing more.
func TestTake(t *testing.T) {
	t.Parallel()
	l := logs(t, store.Memory())
	before := create(t, l, "r-1")
	add(t, before, event(runlog.Began, "a"))
	seen := 0
	w, err := l.OpenWriter(t.Context(), "r-1", func(e runlog.Event) error { seen = e.N; return nil })
	if err != nil || seen != 2 {
		t.Fatal(seen, err)
	}
	add(t, w, event(runlog.Claimed, ""))
	for range 2 {
		if err := before.Append(t.Context(), event(runlog.Ended, "a")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("who has lost the run writes: %v", err)
		}
	}
	add(t, w, event(runlog.Ended, "a"))
	if got := paths(t, l, "r-1", 2); !slices.Equal(got, []string{"3", "4a"}) {
		t.Errorf("%q", got)
	}
	if _, err := l.Create(t.Context(), runlog.Run{ID: "r-1"}, event(runlog.Created, "")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("begun twice: %v", err)
	}
	if _, err := l.OpenWriter(t.Context(), "r-0", nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run that there is not: %v", err)
	}
	wrong := errors.New("wrong")
	if _, err := l.OpenWriter(t.Context(), "r-1", func(runlog.Event) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
}

// TestTogether: what many append at once is all there, each one's in its order, in few writes.
func TestTogether(t *testing.T) {
	t.Parallel()
	writes := 0
	s, err := store.Open(t.TempDir(), &store.Options{OnWrite: func(place string, done bool) {
		if place == "log_runs" && done {
			writes++ // one at a time
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	l := logs(t, s)
	w := create(t, l, "r-1")
	const branches, steps = 16, 10
	var work sync.WaitGroup
	for b := range branches {
		work.Go(func() {
			for i := range steps {
				path := fmt.Sprintf("%d.%d", b, i)
				if err := w.Append(t.Context(), event(runlog.Began, path), event(runlog.Ended, path)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	next := map[string]int{}
	for e, err := range l.Read(t.Context(), "r-1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		branch, step, _ := strings.Cut(e.Path, ".")
		if step != fmt.Sprint(next[branch]/2) {
			t.Fatalf("step %s of branch %s after %d events", step, branch, next[branch])
		}
		next[branch]++
	}
	if len(next) != branches || next["0"] != 2*steps {
		t.Errorf("events %v", next)
	}
	if writes > branches*steps/2 {
		t.Errorf("%d writes for %d appends", writes, branches*steps)
	}
}

// TestLarge: an event that is larger than a record comes back whole; one whose writer was stopped in the middle of it was never written.
func TestLarge(t *testing.T) {
	t.Parallel()
	s := store.Memory()
	l := logs(t, s)
	w := create(t, l, "r-1")
	large := runlog.Event{Kind: runlog.Ended, Path: "large", Output: json.RawMessage(`"` + strings.Repeat("ö", 5<<19) + `"`)}
	add(t, w, event(runlog.Began, "large"), large, event(runlog.Began, "next"))
	for e, err := range l.Read(t.Context(), "r-1", 2) {
		if err != nil || !bytes.Equal(e.Output, large.Output) {
			t.Errorf("%d bytes came back: %v", len(e.Output), err)
		}
		break
	}
	if got := paths(t, l, "r-1", 0); !slices.Equal(got, []string{"1", "2large", "3large", "4next"}) {
		t.Errorf("%q", got)
	}
	raw, err := s.Log("runs", store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Append(t.Context(), store.Key{"r-1"}, []byte(`<{"kind":"ended"`)); err != nil {
		t.Fatal(err)
	}
	w, err = l.OpenWriter(t.Context(), "r-1", func(runlog.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	add(t, w, event(runlog.Ended, "next"))
	if got := paths(t, l, "r-1", 4); !slices.Equal(got, []string{"5next"}) {
		t.Errorf("after a piece that nobody ended: %q", got)
	}
	huge := runlog.Event{Kind: runlog.Ended, Output: json.RawMessage(`"` + strings.Repeat("x", runlog.MaxEvent) + `"`)}
	for _, wrong := range []runlog.Event{huge, {Kind: "made"}, {Kind: runlog.Ended, Output: json.RawMessage(`{`)}} {
		if err := w.Append(t.Context(), wrong); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", wrong.Kind, err)
		}
	}
	add(t, w, event(runlog.Over, "")) // which changed nothing
}

func TestFollow(t *testing.T) {
	t.Parallel()
	l := logs(t, store.Memory())
	w := create(t, l, "r-1")
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := make(chan string), make(chan error)
	go func() {
		ended <- l.Follow(ctx, "r-1", 1, func(e runlog.Event) error { seen <- fmt.Sprint(e.N, e.Path); return nil })
	}()
	for i, path := range []string{"a", "b"} {
		add(t, w, event(runlog.Began, path))
		if got := <-seen; got != fmt.Sprint(i+2, path) {
			t.Errorf("saw %s", got)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	l := logs(t, store.Memory())
	create(t, l, "r-1")
	create(t, l, "r-2")
	run := runlog.Run{
		ID: "r-1", Status: runlog.Waiting, Inputs: json.RawMessage(`1`), Outputs: json.RawMessage(`2`),
		Error: &runlog.Fault{Message: strings.Repeat("ö", 4000)}, Waiting: make([]runlog.Pending, 1000),
	}
	run.Waiting[0] = runlog.Pending{Step: "ask", For: "form", Form: json.RawMessage(`{}`)}
	if err := l.PutSummary(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if run.Waiting[0].Form == nil || len(run.Error.Message) != 8000 {
		t.Error("the caller's run was changed")
	}
	got, err := l.Summary(t.Context(), "r-1")
	if err != nil || got.Status != runlog.Waiting || got.Inputs != nil || len(got.Waiting) != 20 || got.Waiting[0].Form != nil || len(got.Error.Message) > 2010 {
		t.Errorf("%+v, %v", got, err)
	}
	var ids []string
	for run, err := range l.Summaries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, run.ID)
	}
	if !slices.Equal(ids, []string{"r-2", "r-1"}) {
		t.Errorf("%q", ids)
	}
	if err := l.Remove(t.Context(), "r-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Summary(t.Context(), "r-1"); !errors.Is(err, store.ErrNotFound) || paths(t, l, "r-1", 0) != nil {
		t.Errorf("removed, and there: %v", err)
	}
}

// end notes that a run is over.
func end(t *testing.T, l *runlog.Logs, id string) {
	t.Helper()
	if err := l.PutSummary(t.Context(), runlog.Run{ID: id, Status: runlog.OK, Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
}

// TestPrune: what is over goes after 30 days, and before where there is no room; what is not over never goes, and then no other begins.
func TestPrune(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, err := runlog.OpenSmall(store.Memory(), 8, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		id := func(n int) string { return fmt.Sprint("r-", n) }
		for n := range 3 {
			create(t, l, id(n))
			time.Sleep(time.Hour)
		}
		end(t, l, id(0))
		time.Sleep(29 * 24 * time.Hour)
		if n, err := l.Prune(t.Context()); n != 0 || err != nil {
			t.Errorf("%d went, %v", n, err)
		}
		time.Sleep(25 * time.Hour)
		if n, err := l.Prune(t.Context()); n != 1 || err != nil || paths(t, l, id(0), 0) != nil {
			t.Errorf("%d went, %v", n, err)
		}
		for n := 3; n < 20; n++ { // each ends at once, so there is always room
			create(t, l, id(n))
			end(t, l, id(n))
		}
		if paths(t, l, id(1), 0) == nil || paths(t, l, id(2), 0) == nil || paths(t, l, id(19), 0) == nil {
			t.Error("a run that is not over is gone, or the newest")
		}
		for n := 20; ; n++ {
			_, err := l.Create(t.Context(), runlog.Run{ID: id(n)}, event(runlog.Created, ""))
			if errors.Is(err, store.ErrFull) && n >= 25 {
				break
			}
			if err != nil {
				t.Fatal(n, err)
			}
		}
	})
}

// TestFull: a run for which there is no room left is not half there.
func TestFull(t *testing.T) {
	t.Parallel()
	l, err := runlog.OpenSmall(store.Memory(), 100, 4<<10)
	if err != nil {
		t.Fatal(err)
	}
	big := runlog.Event{Kind: runlog.Created, Output: json.RawMessage(`"` + strings.Repeat("x", 8<<10) + `"`)}
	if _, err := l.Create(t.Context(), runlog.Run{ID: "r-1"}, big); !errors.Is(err, store.ErrFull) {
		t.Errorf("error %v", err)
	}
	if _, err := l.Summary(t.Context(), "r-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is listed: %v", err)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := logs(t, store.Memory())
		for name, r := range map[string]*runlog.Results{"cache": l.Cache(), "once": l.Once()} {
			if _, err := r.Load(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
			if err := r.Save(t.Context(), "k", json.RawMessage(`{"a":"`+name+`"}`), time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			time.Sleep(59 * time.Second)
			if got, err := r.Load(t.Context(), "k"); string(got) != `{"a":"`+name+`"}` || err != nil {
				t.Errorf("%s, %v", got, err)
			}
			time.Sleep(time.Second)
			if _, err := r.Load(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
		}
	})
}

func TestNewID(t *testing.T) {
	t.Parallel()
	if a, b := runlog.NewID("key"), runlog.NewID("key"); a != b || len(a) != 14 || a == runlog.NewID("other") {
		t.Error(a, b)
	}
	if a, b := runlog.NewID(""), runlog.NewID(""); a == b {
		t.Error(a, b)
	}
}

// FuzzEvents: whatever stands in a log, reading it ends with the events or an error.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"", "{", `{"kind":"began"}` + "\n" + `{"kind":"ended","output":1}` + "\n", "<{\"kind\":\x00+\"ended\"}\x00>\n", ">", "+x", "<\x00{\"kind\":\"over\"}", `{"kind":"sang"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := store.Memory()
		l := logs(t, s)
		raw, err := s.Log("runs", store.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for record := range bytes.SplitSeq(data, []byte{0}) {
			if _, err := raw.Append(t.Context(), store.Key{"r"}, record); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for e, err := range l.Read(t.Context(), "r", 0) {
			if err != nil {
				if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, runlog.ErrNewer) {
					t.Errorf("error %v", err)
				}
				break
			}
			if n++; e.N != n {
				t.Errorf("event %d is the %d.", e.N, n)
			}
		}
	})
}

// BenchmarkAppend: a step's start or end on the disk.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			s, err := store.Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			w := create(b, logs(b, s), "r-1")
			e := runlog.Event{Kind: runlog.Ended, Path: "each[17].fetch", Output: json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)}
			turns := make(chan struct{})
			var work sync.WaitGroup
			for range writers {
				work.Go(func() {
					for range turns {
						if err := w.Append(b.Context(), e); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				turns <- struct{}{}
			}
			close(turns)
			work.Wait()
		})
	}
}

// BenchmarkTake: the log of a run of 1,000 steps, among others.
func BenchmarkTake(b *testing.B) {
	s, err := store.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	l := logs(b, s)
	w, other := create(b, l, "r-1"), create(b, l, "r-2")
	for i := range 1000 {
		path := fmt.Sprintf("each[%d].fetch", i)
		add(b, w, event(runlog.Began, path))
		add(b, w, event(runlog.Ended, path))
		add(b, other, event(runlog.Began, path))
	}
	for b.Loop() {
		if _, err := l.OpenWriter(b.Context(), "r-1", func(runlog.Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
