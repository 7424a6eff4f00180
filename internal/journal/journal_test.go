package journal_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

var (
	ids    = func(name string) tool.ID { return tool.ID{Upstream: "up", Name: name} }
	header = journal.Header{ID: "e-1", Principal: "ada", Session: "s", Started: time.Unix(1, 0).UTC(), Program: json.RawMessage(`{"code":"x"}`)}
)

func text(s string) tool.Result {
	return tool.Result{Content: []tool.Content{{Type: "text", Text: s}}}
}

// create begins a journal in a folder of the test's own.
func create(t testing.TB, dir string, h journal.Header, carried []journal.Call, opts *journal.Options) *journal.Writer {
	t.Helper()
	w, err := journal.Create(dir, h, carried, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, w *journal.Writer, name string) int {
	t.Helper()
	n, err := w.Begin(journal.Start{Tool: ids(name), Definition: "def", Arguments: "args-" + name, Args: []byte(`{"of":"` + name + `"}`)})
	must(t, err)
	return n
}

func open(t testing.TB, path string) *journal.File {
	t.Helper()
	f, err := journal.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestReadBack: what was written is read: results of every kind to the byte, errors, what never ended, and what began last.
func TestReadBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := create(t, dir, header, nil, nil)
	results := []tool.Result{
		text("plain\n\x00 and \"odd\""),
		{},
		{Structured: json.RawMessage(`{"n":9007199254740993}`), Content: []tool.Content{}},
		{Content: []tool.Content{{Type: "image", MIME: "image/png", Data: []byte{0, 10, 255}}, {Type: "audio", Data: []byte{}}, {Type: "odd", Raw: json.RawMessage(`{"type":"odd"}`)}}},
		{IsError: true, Content: []tool.Content{{Type: "text", Text: "no such ledger"}}},
		{Raw: json.RawMessage(`{"contents":[]}`)},
	}
	var want []journal.Call
	for _, r := range results {
		n := begin(t, w, "read")
		must(t, w.End(n, r, nil))
		want = append(want, journal.Call{Number: n, Tool: ids("read"), Definition: "def", Arguments: "args-read", Args: []byte(`{"of":"read"}`), State: journal.Ended, Result: r, Asked: true})
	}
	lost := begin(t, w, "unknown")
	no := &tool.Error{Kind: tool.Denied, Message: "no", Hint: "ask"}
	must(t, w.Refuse(ids("refused"), "", "args", no))
	failed, timeout := begin(t, w, "failed"), &tool.Error{Kind: tool.Timeout, Message: "timed out", Retryable: true}
	must(t, w.End(failed, tool.Result{}, timeout), w.EndProgram(json.RawMessage(`{"status":"failed"}`)), w.Settle())
	want = append(
		want,
		journal.Call{Number: lost, Tool: ids("unknown"), Definition: "def", Arguments: "args-unknown", Args: []byte(`{"of":"unknown"}`), State: journal.Begun, Asked: true},
		journal.Call{Number: lost + 1, Tool: ids("refused"), Arguments: "args", State: journal.Refused, Err: no, Asked: true},
		journal.Call{Number: failed, Tool: ids("failed"), Definition: "def", Arguments: "args-failed", Args: []byte(`{"of":"failed"}`), State: journal.Ended, Err: timeout, Asked: true, Last: true},
	)
	f := open(t, journal.Path(dir, "e-1"))
	if diff := cmp.Diff(want, f.Calls, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(header, f.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if string(f.Over) != `{"status":"failed"}` || !f.Kept || f.Resumed != "" || !journal.Settled(journal.Path(dir, "e-1")) {
		t.Errorf("over %s, kept %v, resumed by %q", f.Over, f.Kept, f.Resumed)
	}
	for i := range results {
		a, errA := json.Marshal(results[i].Value())
		b, errB := json.Marshal(f.Calls[i].Result.Value())
		if string(a) != string(b) || errA != nil || errB != nil {
			t.Errorf("value %s became %s", a, b)
		}
	}
	info, err := os.Stat(journal.Path(dir, "e-1"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// TestCarried: a journal that goes on with another has its calls; of those that had not ended, those in whose place another was made are gone.
func TestCarried(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	carried := []journal.Call{
		{Tool: ids("a"), Arguments: "1", Args: []byte("{}"), State: journal.Ended, Result: text("one")},
		{Tool: ids("b"), Arguments: "2", State: journal.Begun},
		{Tool: ids("c"), Arguments: "3", State: journal.Ended, Err: &tool.Error{Kind: tool.Failed, Message: "no"}, Optional: true, Last: true},
		{Tool: ids("d"), Arguments: "4", State: journal.Refused, Err: &tool.Error{Kind: tool.Denied}},
	}
	w := create(t, dir, header, carried, nil)
	must(t, w.Request(1), w.Decide(4, journal.Skipped, tool.Result{}, &tool.Error{Kind: tool.Denied, Message: "left"}))
	again, err := w.Begin(journal.Start{Tool: ids("b"), Definition: "def", Arguments: "2", Replaces: []int{2}, Sync: true})
	must(t, err, w.End(again, text("two"), nil), w.Close())
	f := open(t, journal.Path(dir, "e-1"))
	got := map[string]journal.Call{}
	for _, c := range f.Calls {
		got[c.Tool.Name+string(c.State)] = c
	}
	if len(f.Calls) != 4 || len(got) != 4 {
		t.Fatalf("calls: %+v", f.Calls)
	}
	if a := got["aended"]; !a.Asked || a.Result.Text() != "one" || string(a.Args) != "{}" {
		t.Errorf("a: %+v", a)
	}
	if b := got["bended"]; !b.Asked || b.Number != 5 || b.Result.Text() != "two" {
		t.Errorf("b: %+v", b)
	}
	if c := got["cended"]; c.Asked || !c.Optional || !c.Last || c.Err == nil || c.Err.Kind != tool.Failed {
		t.Errorf("c: %+v", c)
	}
	if d := got["dended"]; d.Decision != journal.Skipped || d.Err == nil || d.Err.Message != "left" || d.Arguments != "4" {
		t.Errorf("d: %+v", d)
	}
}

// TestWithoutRoom: results beyond the limit are marked, and calls are known all the same.
func TestWithoutRoom(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{-1, 18} {
		dir := t.TempDir()
		w := create(t, dir, header, nil, &journal.Options{Results: limit})
		for _, s := range []string{"12345678", "123"} {
			must(t, w.End(begin(t, w, "a"), text(s), nil))
		}
		must(t, w.Close())
		calls := open(t, journal.Path(dir, "e-1")).Calls
		if calls[0].Lost != (limit < 0) || !calls[1].Lost || calls[1].Args != nil || calls[1].State != journal.Ended {
			t.Errorf("limit %d: %+v", limit, calls)
		}
	}
}

// TestTail: whatever is cut off or changed at a file's end, what is before counts, and writing goes on behind it.
func TestTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := journal.Path(dir, "e-1")
	w := create(t, dir, header, nil, nil)
	must(t, w.End(begin(t, w, "a"), text("kept"), nil))
	info, err := os.Stat(path)
	must(t, err)
	must(t, w.End(begin(t, w, "b"), text("lost"), nil), w.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	first, err := journal.Parse(whole[:info.Size()])
	must(t, err)
	for cut := len(whole) - 1; cut >= int(info.Size()); cut-- {
		changed := slices.Clone(whole)
		changed[cut] ^= 0x40
		for _, data := range [][]byte{whole[:cut], changed} {
			got, err := journal.Parse(data)
			if err != nil || got.Whole < first.Whole || len(got.Calls) < 1 || got.Calls[0].Result.Text() != "kept" {
				t.Fatalf("at %d: %+v, %v", cut, got, err)
			}
			if len(got.Calls) == 2 && got.Calls[1].State != journal.Begun {
				t.Fatalf("at %d a damaged end counts", cut)
			}
		}
	}
	must(t, os.WriteFile(path, whole[:info.Size()+11], 0o600))
	f := open(t, path)
	must(t, f.End(json.RawMessage(`{"status":"interrupted"}`)), f.Resume("e-2"), f.Close())
	f = open(t, path)
	if string(f.Over) != `{"status":"interrupted"}` || f.Resumed != "e-2" || len(f.Calls) != 1 {
		t.Errorf("%+v", f.Contents)
	}
}

// TestOneAtATime: while an execution runs nobody reads its journal, and of two who want it afterwards one gets it.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := journal.Path(dir, "e-1")
	w := create(t, dir, header, nil, nil)
	if _, err := journal.Open(path); !errors.Is(err, journal.ErrRunning) {
		t.Errorf("while it runs: %v", err)
	}
	if _, err := journal.Create(dir, header, nil, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one of the same id: %v", err)
	}
	must(t, w.Close())
	var work sync.WaitGroup
	got := make(chan *journal.File, 8)
	for range cap(got) {
		work.Go(func() {
			if f, err := journal.Open(path); err == nil {
				got <- f
			} else if !errors.Is(err, journal.ErrRunning) {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if len(got) != 1 {
		t.Fatalf("%d have it", len(got))
	}
	f := <-got
	must(t, f.Remove())
	if _, err := journal.Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestPaths: an id that is none leads nowhere.
func TestPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, id := range []string{"", "../e-1", "e-1/..", "E-1", strings.Repeat("a", 41), "e-1\x00"} {
		if path := journal.Path(dir, id); filepath.Dir(path) != dir || filepath.Base(path) != ".none.journal" {
			t.Errorf("%q is at %s", id, path)
		}
	}
}

// TestSweep: what is old goes, and the oldest of what is too much; what runs stays.
func TestSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	now := time.Now()
	for i, name := range []string{"e-old", "e-2", "e-3", "e-4"} {
		w := create(t, filepath.Join(root, "ada"), journal.Header{ID: name}, nil, nil)
		must(t, w.End(begin(t, w, "a"), text(strings.Repeat("x", 10_000)), nil), w.Close())
		age := time.Duration(4-i) * time.Minute
		must(t, os.Chtimes(journal.Path(filepath.Join(root, "ada"), name), now, now.Add(-age)))
	}
	well := create(t, filepath.Join(root, "bob"), journal.Header{ID: "e-well"}, nil, nil)
	must(t, well.End(begin(t, well, "a"), text(strings.Repeat("x", 10_000)), nil), well.SettleSuccess())
	running := create(t, filepath.Join(root, "bob"), journal.Header{ID: "e-runs"}, nil, nil)
	must(t, os.Chtimes(journal.Path(filepath.Join(root, "bob"), "e-runs"), now, now.Add(-time.Hour)))
	if n := journal.Sweep(root, now.Add(-4*time.Minute+time.Second), 1<<20); n != 1 {
		t.Errorf("%d went by age", n)
	}
	if path := journal.Path(filepath.Join(root, "bob"), "e-well"); !journal.Succeeded(path) || !journal.Settled(path) {
		t.Error("it does not say that it ended well")
	}
	if n := journal.Sweep(root, now.Add(-time.Hour), 35_000); n != 1 || journal.Succeeded(journal.Path(filepath.Join(root, "bob"), "e-well")) {
		t.Errorf("%d went by size, not the one that ended well", n)
	}
	if n := journal.Sweep(root, now.Add(-time.Hour), 25_000); n != 1 {
		t.Errorf("%d went by size", n)
	}
	if got := journal.List(filepath.Join(root, "ada")); !slices.Equal(got, []string{"e-4", "e-3"}) {
		t.Errorf("left: %v", got)
	}
	must(t, running.EndProgram(json.RawMessage(`{}`)), running.Close())
}

// TestBroken: a journal that cannot be written any further, as on a full disk, stays as it is: it has all calls that were made. It is
// locked until it is closed.
func TestBroken(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("JOURNAL_BROKEN_DIR"); dir != "" {
		breakJournal(t, dir)
		return
	}
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestBroken$")
	child.Env = append(os.Environ(), "JOURNAL_BROKEN_DIR="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	calls := open(t, journal.Path(dir, "e-1")).Calls
	if len(calls) != 2 || calls[0].Result.Text() != "done" || calls[1].State != journal.Begun {
		t.Errorf("%+v", calls)
	}
}

// breakJournal writes a journal beyond the size that files of this process may have.
func breakJournal(t *testing.T, dir string) {
	t.Helper()
	w := create(t, dir, header, nil, nil)
	must(t, w.End(begin(t, w, "a"), text("done"), nil))
	begin(t, w, "b")
	info, err := os.Stat(journal.Path(dir, "e-1"))
	must(t, err)
	signal.Ignore(syscall.SIGXFSZ)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(info.Size()) + 20, Max: 1 << 40}))
	for range 2 { // half a frame, then nothing more
		if _, err := w.Begin(journal.Start{Tool: ids("c")}); err == nil {
			t.Error("it was written")
		}
	}
	if _, err := journal.Open(journal.Path(dir, "e-1")); !errors.Is(err, journal.ErrRunning) {
		t.Errorf("opened while the execution runs: %v", err)
	}
	must(t, w.Close())
	if _, err := w.Begin(journal.Start{Tool: ids("c")}); err == nil {
		t.Error("a closed journal was written to")
	}
}

// TestKilled: what a process had written when it was killed is there, and its journal is free.
func TestKilled(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("JOURNAL_TEST_DIR"); dir != "" {
		w, err := journal.Create(dir, header, nil, nil)
		must(t, err)
		must(t, w.End(begin(t, w, "a"), text("done"), nil))
		begin(t, w, "b")
		_, _ = os.Stdout.WriteString("ready\n")
		time.Sleep(time.Hour)
	}
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "JOURNAL_TEST_DIR="+dir)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(journal.Path(dir, "e-1")); !errors.Is(err, journal.ErrRunning) {
		t.Error(err)
	}
	must(t, child.Process.Kill())
	_ = child.Wait()
	calls := open(t, journal.Path(dir, "e-1")).Calls
	if len(calls) != 2 || calls[0].Result.Text() != "done" || calls[1].State != journal.Begun {
		t.Errorf("%+v", calls)
	}
}

// FuzzParse: no bytes make it panic or take more memory than they are; what counts of a file is read again as the same.
func FuzzParse(f *testing.F) {
	dir := f.TempDir()
	w := create(f, dir, header, []journal.Call{{Tool: ids("a"), State: journal.Ended, Result: text("one")}}, nil)
	must(f, w.Request(1), w.End(begin(f, w, "b"), text("two"), nil), w.EndProgram(json.RawMessage(`{}`)), w.Settle())
	whole, err := os.ReadFile(journal.Path(dir, "e-1"))
	must(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := journal.Parse(data)
		if err != nil {
			return
		}
		again, err := journal.Parse(data[:c.Whole])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Error(diff)
		}
	})
}

// BenchmarkCall is what a call's two records cost, with a result of 1 KiB.
func BenchmarkCall(b *testing.B) {
	w := create(b, b.TempDir(), header, nil, &journal.Options{Results: 1 << 40})
	result := text(strings.Repeat("x", 1<<10))
	for b.Loop() {
		n, err := w.Begin(journal.Start{Tool: ids("a"), Definition: strings.Repeat("d", 64), Arguments: strings.Repeat("a", 64), Args: []byte(`{"name":"a text of a usual length"}`)})
		if err != nil {
			b.Fatal(err)
		}
		if err := w.End(n, result, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBegin is what a call costs that is on record before it leaves, with and without a sync.
func BenchmarkBegin(b *testing.B) {
	for name, sync := range map[string]bool{"written": false, "synced": true} {
		b.Run(name, func(b *testing.B) {
			w := create(b, b.TempDir(), header, nil, nil)
			for b.Loop() {
				if _, err := w.Begin(journal.Start{Tool: ids("a"), Arguments: "digest", Sync: sync}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
