package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/audit"
)

func open(t testing.TB, dir string, opts *audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func add(t testing.TB, l *audit.Log, events ...audit.Event) {
	t.Helper()
	for _, e := range events {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

func call(name string) audit.Event {
	return audit.Event{Kind: audit.Call, Principal: "token:ci", Execution: "e-1", Tool: name, Decision: "allow"}
}

func records(t testing.TB, dir string) (all []audit.Record) {
	t.Helper()
	for r, err := range audit.Read(dir, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func verify(t testing.TB, dir string, checks *audit.Checks) audit.Report {
	t.Helper()
	r, err := audit.Verify(dir, checks)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAppend: what is appended is read back in order, by a second log of the same directory too, and is whole.
func TestAppend(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	one, two := open(t, dir, nil), open(t, dir, &audit.Options{Opened: audit.Event{By: "two"}})
	for i := range 50 {
		add(t, one, call(fmt.Sprint("a.", i)))
		add(t, two, call(fmt.Sprint("b.", i)))
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if err := one.Append(call("late")); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	all := records(t, dir)
	if len(all) != 102 || all[0].Kind != audit.LogOpened || all[1].Tool != "a.0" || all[2].By != "two" || all[101].Tool != "b.49" || all[101].Seq != 102 {
		t.Errorf("%d records, %+v", len(all), all[:3])
	}
	if got := verify(t, dir, nil); !got.OK() || got.Last != 102 || got.Count != 102 || len(got.Notes) > 0 {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v %v", info, err)
	}
	if one.Digest([]byte("x")) != two.Digest([]byte("x")) || one.Digest([]byte("x")) == one.Digest([]byte("y")) || one.Digest(nil) != "" {
		t.Error("digests")
	}
}

// TestHostileValues (K10): what is long, of several lines or not UTF-8 is one bounded record with a digest of all of it.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, nil)
	long := strings.Repeat("x", 1<<20)
	for _, value := range []string{"a\n{\"seq\":9}\nb", "\x1b[2Jclear", "\xff\xfe", long, `","hash":"` + strings.Repeat("0", 64) + `"}`, "\u202eevil"} {
		add(t, l, audit.Event{Kind: audit.Call, Tool: value, Principal: value, Note: value, Text: value})
	}
	all := records(t, dir)
	if len(all) != 7 || !verify(t, dir, nil).OK() {
		t.Fatalf("%d records", len(all))
	}
	for _, r := range all[1:] {
		if len(r.Line) > 80<<10 || bytes.ContainsAny(r.Line, "\n\x1b") || strings.ContainsAny(r.Tool, "\n\x1b\u202e") {
			t.Errorf("%d bytes: %.300q", len(r.Line), r.Line)
		}
	}
	if cut := all[4].Tool; len(cut) > 300 || !strings.Contains(cut, "[sha256:") {
		t.Errorf("%q", cut)
	}
	if all[1].Tool == all[2].Tool || all[3].Tool == all[1].Tool {
		t.Error("two values look the same")
	}
}

// forgedLine is a line of another log.
func forgedLine(t *testing.T, l *audit.Log) []byte {
	t.Helper()
	for r, err := range audit.Read(l.Dir(), 2) {
		if err != nil {
			t.Fatal(err)
		}
		return r.Line
	}
	return nil
}

func copyLog(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// mirrorOf yields the lines of a log as a copy has them.
func mirrorOf(t *testing.T, dir string) func(func([]byte, error) bool) {
	t.Helper()
	all := records(t, dir)
	return func(yield func([]byte, error) bool) {
		for _, r := range all {
			if !yield(r.Line, nil) {
				return
			}
		}
	}
}

// TestPruned: what is too old or too much goes, and the rest proves itself and that it was pruning.
func TestPruned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, &audit.Options{Segment: 2000, Size: 6000})
	for i := range 100 {
		add(t, l, call(fmt.Sprint("a.t", i)))
	}
	got := verify(t, dir, nil)
	if !got.OK() || got.Pruned < 40 || got.First != got.Pruned+1 {
		t.Errorf("%+v", got)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "records-*.jsonl"))
	if len(files) > 5 {
		t.Errorf("%d files", len(files))
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, dir, nil); got.OK() || got.Problems[0].Seq != 1 {
		t.Errorf("one more file is gone: %+v", got)
	}
	byAge := t.TempDir()
	old := open(t, byAge, &audit.Options{Segment: 2000, Keep: time.Nanosecond})
	for i := range 30 {
		add(t, old, call(fmt.Sprint("a.t", i)))
	}
	if err := old.Prune(); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, byAge, nil); !got.OK() || got.Pruned == 0 {
		t.Errorf("%+v", got)
	}
}

// TestPruneDamaged: a file that somebody has damaged stays, for verify to find, and what comes is recorded all the same.
func TestPruneDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, &audit.Options{Segment: 2000, Size: 4000})
	for i := range 8 {
		add(t, l, call(fmt.Sprint("a.t", i)))
	}
	first := filepath.Join(dir, "records-0000000000000001.jsonl")
	data, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(first, 0o600), os.WriteFile(first, append(data, "nonsense\n"...), 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		add(t, l, call(fmt.Sprint("a.u", i)))
	}
	if got := verify(t, dir, nil); got.OK() || got.Count != 59 || !strings.Contains(got.Problems[0].Text, "not a record") {
		t.Errorf("%+v", got)
	}
}

// TestTorn: half a record at the end, as a loss of power leaves it, is taken off and put on record.
func TestTorn(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{`{"seq":4,"time":"2026-`, "\x00\x00\x00\x00", "{"} {
		dir := t.TempDir()
		l := open(t, dir, nil)
		add(t, l, call("a.one"))
		file := filepath.Join(dir, "records-0000000000000001.jsonl")
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(rest); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		if got := verify(t, dir, nil); !got.OK() || got.Last != 2 || len(got.Notes) == 0 {
			t.Errorf("%+v", got)
		}
		add(t, l, call("a.two"))
		all := records(t, dir)
		if got := verify(t, dir, nil); !got.OK() || len(all) != 4 || all[2].Kind != audit.LogTorn || all[2].Bytes != int64(len(rest)) {
			t.Errorf("%+v %v", got, all)
		}
	}
}

// TestDamagedEnd: nothing follows an end that is no record.
func TestDamagedEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "records-0000000000000001.jsonl"), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(dir, nil); !errors.Is(err, audit.ErrDamaged) {
		t.Errorf("%v", err)
	}
}

// TestGone: while the folder is not there nothing is acknowledged, and it works again when it is.
func TestGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, nil)
	add(t, l, call("a.one"))
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	saved := map[string][]byte{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		saved[f] = data
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Append(call("a.two")); !errors.Is(err, audit.ErrGone) {
			t.Errorf("%v", err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for f, data := range saved {
		if err := os.WriteFile(f, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool { return l.Append(call("a.three")) == nil }) // a sync may have failed meanwhile
	if all := records(t, dir); len(all) != 3 || all[2].Tool != "a.three" || !verify(t, dir, nil).OK() {
		t.Errorf("%v", all)
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it never came to that")
}

// TestAtOnce: many append at once, through two logs of one directory, over several files.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := []*audit.Log{open(t, dir, &audit.Options{Segment: 8000}), open(t, dir, &audit.Options{Segment: 8000})}
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for j := range 40 {
				if err := logs[i%2].Append(call(fmt.Sprintf("w%d.t%d", i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if got := verify(t, dir, nil); !got.OK() || got.Last != 322 {
		t.Errorf("%+v", got)
	}
	next := map[string]int{}
	for _, r := range records(t, dir) {
		var w, j int
		if n, _ := fmt.Sscanf(r.Tool, "w%d.t%d", &w, &j); n == 2 {
			if next[fmt.Sprint(w)] != j {
				t.Fatalf("%s is not in its order", r.Tool)
			}
			next[fmt.Sprint(w)]++
		}
	}
}

// FuzzRead: no content of a file makes reading or verifying it fail in another way than by saying so, and what is not what
// Append wrote is never found whole.
func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	l := open(f, dir, nil)
	add(f, l, call("a.one"), call("a.two"))
	whole, err := os.ReadFile(filepath.Join(dir, "records-0000000000000001.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Add(append(slices.Clone(whole), whole...))
	f.Add([]byte("{}\n\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "records-0000000000000001.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		got := verify(t, dir, nil)
		for r, err := range audit.Read(dir, 0) {
			if err != nil && !errors.Is(err, audit.ErrDamaged) {
				t.Fatal(err)
			}
			_ = r
		}
		if end := bytes.LastIndexByte(data, '\n') + 1; got.OK() && got.Count > 0 && !bytes.HasPrefix(whole, data[:end]) && got.First == 1 {
			if _, ok := audit.Honest(data[:end]); !ok {
				t.Errorf("found whole: %q", data)
			}
		}
	})
}
