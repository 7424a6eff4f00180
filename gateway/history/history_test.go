package history

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/journal"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// openTestHistory opens the records of executions, with the settings that a user has who sets nothing.
func openTestHistory(t testing.TB, records *store.Store, dir string) *History {
	t.Helper()
	settings := &atomic.Pointer[config.Config]{}
	standard := config.Default()
	settings.Store(&standard)
	h, err := Open(Options{Records: records, DataDir: dir, Settings: settings, Logger: slog.New(slog.DiscardHandler), Meter: &execution.Meter{}, OnTokens: func(int, int) {}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestRecordAfterTheAnswer: a record that is not in the store yet is found, by its owner alone; the store gets it, and the
// journal of what ended well goes; of what did not it stays, and says that the record is kept.
func TestRecordAfterTheAnswer(t *testing.T) {
	t.Parallel()
	records, dir := store.Memory(), t.TempDir()
	r := openTestHistory(t, records, dir)
	ada := tool.WithPrincipal(t.Context(), "ada")
	for id, status := range map[string]sandbox.Status{"e-ok": sandbox.OK, "e-failed": sandbox.Failed} {
		w, err := journal.Create(r.Folder("ada"), journal.Header{ID: id, Principal: "ada", Program: []byte(`{"code":"x"}`)}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.put(ada, Record{ID: id, Principal: "ada", Status: status, Code: "x"}, &toolcall.Execution{Root: id, Journal: w}, nil, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := r.find(ada, id); err != nil || got.Status != status {
			t.Errorf("%s before it is kept: %+v, %v", id, got, err)
		}
	}
	if _, err := r.load(ada, "e-ok", false); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is kept already: %v", err)
	}
	r.Start()
	r.Close()
	for _, id := range []string{"e-ok", "e-failed"} {
		if _, err := r.find(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s of another: %v", id, err)
		}
		if got, err := r.load(ada, id, false); err != nil || got.Code != "x" {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	if left := journal.List(r.Folder("ada")); len(left) != 1 || left[0] != "e-failed" || !journal.Settled(journal.Path(r.Folder("ada"), "e-failed")) {
		t.Errorf("left: %v", left)
	}
}

// TestLeftByAKill: what a process left that was killed is put on record by the next: an end that was written down as it was,
// and one that was not as interrupted, with its calls.
func TestLeftByAKill(t *testing.T) {
	t.Parallel()
	records, dir := store.Memory(), t.TempDir()
	before := openTestHistory(t, records, dir)
	for _, id := range []string{"e-ended", "e-killed", "e-runs"} {
		w, err := journal.Create(before.Folder("ada"), journal.Header{ID: id, Principal: "ada", Started: time.Now(), Program: []byte(`{"code":"x","language":"python"}`)}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Begin(journal.Start{Tool: tool.ID{Upstream: "up", Name: "a"}, Definition: "def", Arguments: "args"}); err != nil {
			t.Fatal(err)
		}
		if id == "e-ended" {
			if err := w.EndProgram([]byte(`{"record":{"id":"e-ended","principal":"ada","status":"failed"}}`)); err != nil {
				t.Fatal(err)
			}
		}
		if id == "e-runs" {
			defer func() { _ = w.Close() }()
		} else if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ada := tool.WithPrincipal(t.Context(), "ada")
	if r, err := before.find(ada, "e-killed"); err != nil || r.Status != execution.Interrupted {
		t.Errorf("asked for before it is on record: %+v, %v", r, err)
	}
	r := openTestHistory(t, records, dir)
	r.Start()
	r.Flush(t.Context(), "")
	r.Close()
	if got, err := r.load(ada, "e-ended", false); err != nil || got.Status != sandbox.Failed || got.Code != "x" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := r.load(ada, "e-killed", false)
	if err != nil || got.Status != execution.Interrupted || got.Made != 1 || got.Calls[0].Outcome != toolcall.Unfinished || got.Language != "python" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.load(ada, "e-runs", false); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that runs: %v", err)
	}
}

// TestFoundAfterAKill: who asks what has run while a killed process's executions are being put on record gets them too: a client that
// has lost an answer would else run its program again.
func TestFoundAfterAKill(t *testing.T) {
	t.Parallel()
	records, dir := store.Memory(), t.TempDir()
	r := openTestHistory(t, records, dir)
	w, err := journal.Create(r.Folder("ada"), journal.Header{ID: "e-killed", Principal: "ada", Started: time.Now(), Program: []byte(`{"code":"x"}`)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	locked, err := journal.Open(journal.Path(r.Folder("ada"), "e-killed")) // as by the recovery
	if err != nil {
		t.Fatal(err)
	}
	ada := tool.WithPrincipal(t.Context(), "ada")
	var work sync.WaitGroup
	work.Go(func() {
		if page, err := r.Executions(ada, Filter{}); err != nil || len(page.Executions) != 1 {
			t.Errorf("list: %+v, %v", page, err)
		}
	})
	work.Go(func() {
		if got, err := r.find(ada, "e-killed"); err != nil || got.Status != execution.Interrupted {
			t.Errorf("one: %+v, %v", got, err)
		}
	})
	time.Sleep(20 * time.Millisecond) // both have asked, mostly
	if err := locked.Close(); err != nil {
		t.Fatal(err)
	}
	r.Start()
	defer r.Close()
	work.Wait()
}

// TestAnswerLost: an execution that succeeded in a process that was killed before it was on record is the one to resume, and one that
// was on record is not.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	records, dir := store.Memory(), t.TempDir()
	r := openTestHistory(t, records, dir)
	for _, id := range []string{"e-lost", "e-answered", "e-run", "e-runlost"} {
		root := ""
		if strings.HasPrefix(id, "e-run") {
			root = "r-1" // of a workflow, which resumes it itself
		}
		w, err := journal.Create(r.Folder("ada"), journal.Header{ID: id, Root: root, Principal: "ada", Started: time.Now(), Program: []byte(`{"code":"x"}`)}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := w.Begin(journal.Start{Tool: tool.ID{Upstream: "up", Name: "a"}, Definition: "def", Arguments: "args"})
		if err == nil {
			err = w.End(n, tool.Result{}, nil)
		}
		if err == nil {
			err = w.EndProgram([]byte(`{"record":{"id":"` + id + `","principal":"ada","status":"ok","made":1}}`))
		}
		end := w.Close
		if id == "e-answered" || id == "e-run" {
			end = w.SettleSuccess
		}
		if err := errors.Join(err, end()); err != nil {
			t.Fatal(err)
		}
	}
	r.Start()
	defer r.Close()
	ada := tool.WithPrincipal(t.Context(), "ada")
	if got, err := r.LastFailed(ada, ""); err != nil || got != "e-lost" {
		t.Errorf("the last to resume is %q, %v", got, err)
	}
	if got, err := r.LastSucceeded(ada); err != nil || got != "e-answered" {
		t.Errorf("the last that was answered is %q, %v", got, err)
	}
	for _, id := range []string{"e-lost", "e-answered"} {
		f, end, err := r.OpenEnded(ada, id)
		if err != nil || end.Record.Status != sandbox.OK {
			t.Fatalf("%s: %+v, %v", id, end, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkJournaled is what an answer waits for of its record: the journal's beginning and end, and 10 calls in it.
func BenchmarkJournaled(b *testing.B) {
	records, err := store.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	r := openTestHistory(b, records, b.TempDir())
	r.Start()
	defer r.Close()
	code := strings.Repeat("print(1)\n", 230)
	for b.Loop() {
		id := execution.NewID()
		w, err := journal.Create(r.Folder("ada"), journal.Header{ID: id, Principal: "ada", Program: []byte(strconv.Quote(code))}, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		for range 10 {
			n, err := w.Begin(journal.Start{Tool: tool.ID{Upstream: "a", Name: "b"}, Definition: "def", Arguments: "args"})
			if err == nil {
				err = w.End(n, tool.Result{Content: []tool.Content{{Type: "text", Text: code}}}, nil)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if err := r.put(b.Context(), Record{ID: id, Principal: "ada", Status: sandbox.OK, Code: code}, &toolcall.Execution{Root: id, Journal: w}, nil, nil); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		r.Flush(b.Context(), id)
		b.StartTimer()
	}
}

// BenchmarkRecord is what a record adds to an execution: a program of 2 KB with 10 calls, written through to the disk.
func BenchmarkRecord(b *testing.B) {
	records, err := store.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	j := openTestHistory(b, records, "")
	calls := &toolcall.List{}
	for b.Loop() {
		*calls = toolcall.List{}
		for range 10 {
			calls.Begin(&toolcall.Attempt{Tool: tool.ID{Upstream: "a", Name: "b"}, Definition: "digest", Arguments: strings.Repeat("a", 64)})
		}
		r := Record{ID: execution.NewID(), Code: strings.Repeat("print(1)\n", 230)}
		r.Calls, r.Made = calls.All()
		if err := j.write(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// TestHandover: a record of a process without the store is moved there by the one that has it, once, with the order of their starts;
// a file that is not a record is removed.
func TestHandover(t *testing.T) {
	t.Parallel()
	dir, ada := t.TempDir(), tool.WithPrincipal(t.Context(), "ada")
	begun := time.Now().UTC()
	other, owner := openTestHistory(t, nil, dir), openTestHistory(t, store.Memory(), dir)
	for i, h := range []*History{owner, other} {
		r := Record{ID: "e-" + strconv.Itoa(i), Principal: "ada", Status: sandbox.OK, Code: "x", Started: begun.Add(-time.Duration(i) * time.Minute)}
		if err := h.put(ada, r, &toolcall.Execution{Root: r.ID}, nil, nil); err != nil {
			t.Fatal(err)
		}
		h.Start()
		h.Close()
	}
	if err := os.WriteFile(filepath.Join(dir, HandoverFolder, "e-other.json"), []byte(`{"id":"e-1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		page, err := owner.Executions(ada, Filter{})
		if err != nil || len(page.Executions) != 2 || page.Executions[0].ID != "e-0" || page.Executions[1].ID != "e-1" {
			t.Errorf("executions: %+v, %v", page, err)
		}
	}
	if got, err := owner.Record(ada, "e-1"); err != nil || got.Code != "x" {
		t.Errorf("record: %+v, %v", got, err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, HandoverFolder)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestTextOfRecords: a record is found by each part of its texts, in any case, also by those that JSON writes in other characters.
func TestTextOfRecords(t *testing.T) {
	t.Parallel()
	h := openTestHistory(t, store.Memory(), "")
	close(h.recovered)
	ctx := tool.WithOperator(t.Context(), "op")
	texts := []string{"plain", "Größe", "日本語", `a"b`, `c\d`, "<tag>", "x&y", "two\nlines", "tab\there", "line\u2028end", "\x00nul", "İstanbul", "emoji 🎉", "bad\xffutf"}
	for i, text := range texts {
		record := Record{ID: "e-" + strconv.Itoa(i), Principal: "ada", Language: "python", Status: sandbox.OK, Code: "before " + text + " after"}
		if err := h.write(ctx, record); err != nil {
			t.Fatal(err)
		}
		stored, err := h.find(ctx, record.ID)
		if err != nil {
			t.Fatal(err)
		}
		part := strings.TrimSuffix(strings.TrimPrefix(stored.Code, "before "), " after")
		for _, asked := range []string{part, strings.ToLower(part), strings.ToUpper(part)} {
			if !strings.Contains(strings.ToLower(stored.Code), strings.ToLower(asked)) {
				continue // its upper case has another lower case
			}
			page, err := h.Executions(ctx, Filter{Text: asked})
			if err != nil || page.Total != 1 || page.Executions[0].ID != record.ID {
				t.Errorf("%q: %d of %v, %v", asked, page.Total, page.Executions, err)
			}
		}
	}
	if page, err := h.Executions(ctx, Filter{Text: "language"}); err != nil || page.Total != 0 { // a name of JSON is no text of the record
		t.Errorf("a name of JSON: %d, %v", page.Total, err)
	}
}

// TestSearchMany: a search that matches many records reads few of them, and says that their number is an estimate; a page after
// those is exact, and so is the number of few.
func TestSearchMany(t *testing.T) {
	t.Parallel()
	h := openTestHistory(t, store.Memory(), "")
	close(h.recovered)
	ctx := tool.WithOperator(t.Context(), "op")
	const many = 2*maxVerified + 100
	begun := time.Now().UTC()
	for i := range many {
		record := Record{ID: "e-" + strconv.Itoa(i), Principal: "p" + strconv.Itoa(i%7), Status: sandbox.OK, Code: fmt.Sprintf("common(%d)", i), Started: begun.Add(time.Duration(i) * time.Second)}
		if err := h.write(ctx, record); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []struct {
		filter    Filter
		first     string
		total     int
		estimated bool
	}{
		{Filter{Text: "COMMON("}, "e-1099", many, true},
		{Filter{Text: "common(", Offset: many - 100}, "e-99", many, true},
		{Filter{Text: "common(", Principal: "p1"}, "e-1093", many / 7, false},
		{Filter{Text: "common(17)"}, "e-17", 1, false},
		{Filter{Text: "common(17)", Offset: 1}, "", 1, false},
		{Filter{Text: "uncommon"}, "", 0, false},
	} {
		page, err := h.Executions(ctx, want.filter)
		first := ""
		if len(page.Executions) > 0 {
			first = page.Executions[0].ID
		}
		if err != nil || first != want.first || page.Total != want.total || page.Estimated != want.estimated {
			t.Errorf("%+v: %s first of %d, estimated %v, %v", want.filter, first, page.Total, page.Estimated, err)
		}
	}
	if r, err := h.Record(ctx, "e-0"); err != nil || r.Code != "common(0)" {
		t.Errorf("the oldest: %+v, %v", r, err)
	}
	if _, err := h.records.Put(ctx, KeyOf("p1", "e-damaged"), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Record(ctx, "e-damaged"); err == nil || errors.Is(err, ErrNoExecution) {
		t.Errorf("a damaged record: %v", err)
	}
	if _, err := h.Record(ctx, "e-none"); !errors.Is(err, ErrNoExecution) {
		t.Errorf("no record: %v", err)
	}
}

// TestUsers: an operator sees what each principal did, the most recent one first; others see themselves.
func TestUsers(t *testing.T) {
	t.Parallel()
	h := openTestHistory(t, store.Memory(), "")
	close(h.recovered)
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for i, r := range []Record{
		{Principal: "ada", Status: sandbox.OK, Made: 2, Client: "old 1"}, {Principal: "bob", Status: sandbox.Failed, Made: 1}, {Principal: "ada", Status: sandbox.TimedOut, Made: 3, Client: "new 2"},
		{Principal: "ada", Status: execution.Held, Client: "new 2"}, {Status: sandbox.OK},
	} {
		r.ID, r.Started = "e-"+strconv.Itoa(i), noon.Add(time.Duration(i)*time.Minute)
		if err := h.write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	ada := User{Principal: "ada", Programs: 3, Failed: 1, Calls: 5, Last: noon.Add(3 * time.Minute), Client: "new 2"}
	want := []User{{Programs: 1, Last: noon.Add(4 * time.Minute)}, ada, {Principal: "bob", Programs: 1, Failed: 1, Calls: 1, Last: noon.Add(time.Minute)}}
	if got, err := h.Users(tool.WithOperator(t.Context(), "op")); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := h.Users(tool.WithPrincipal(t.Context(), "ada")); err != nil || !slices.Equal(got, []User{ada}) {
		t.Errorf("%+v, %v", got, err)
	}
}
