package shared

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"sallyport/internal/journal"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

// gateway is a process that shares the store: its copies, and the folder of its files.
type gateway struct {
	*Journals

	records *store.Store
	dir     string
}

func newGateway(t *testing.T, c *natscluster.Cluster) *gateway {
	t.Helper()
	records := storetest.Connect(t, c.Server(""))
	all, err := Open(records, time.Hour, testutil.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	return &gateway{all, records, t.TempDir()}
}

// create begins a journal. By its header, another process may have written it.
func (g *gateway) create(t *testing.T, id, by string) *journal.Writer {
	t.Helper()
	w, err := journal.Create(g.dir, journal.Header{ID: id, Gateway: by}, nil, &journal.Options{Copy: g.Copy("ada", id)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func (g *gateway) open(id string) (*journal.File, error) {
	return journal.OpenCopied(journal.Path(g.dir, id), g.Copy("ada", id))
}

// isLeft reports whether an execution needs a gateway.
func (g *gateway) isLeft(t *testing.T, id string) (left bool) {
	t.Helper()
	if err := g.Left(t.Context(), func(_, one string) { left = left || one == id }); err != nil {
		t.Fatal(err)
	}
	return left
}

func begin(t *testing.T, w *journal.Writer) int {
	t.Helper()
	n, err := w.Begin(journal.Start{Tool: tool.ID{Upstream: "bank", Name: "pay"}, Fence: true})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func result(size int) tool.Result {
	return tool.Result{Content: []tool.Content{{Type: "text", Text: string(bytes.Repeat([]byte("x"), size))}}}
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// gone is the id of a gateway that has died.
const gone = "g-gone"

// TestCopies has gateways that share one server.
func TestCopies(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	for name, part := range map[string]func(t *testing.T, one, two *gateway){
		"read": readElsewhere, "not begun": notBegun, "fenced": fenced, "claimed once": claimedOnce, "settled meanwhile": settledMeanwhile, "end missing": endMissing, "half a batch": halfBatch, "lost answer": lostAnswer, "removed": removed,
	} {
		t.Run(name, func(t *testing.T) { part(t, newGateway(t, c), newGateway(t, c)) })
	}
	t.Run("no answer", func(t *testing.T) { noAnswer(t, c) })
}

// readElsewhere: a journal is read at the other gateway when the first one has left, also with a result of several parts.
func readElsewhere(t *testing.T, one, two *gateway) {
	t.Helper()
	w := one.create(t, "e-read", one.Gateway())
	n := begin(t, w)
	if _, err := two.open("e-read"); !errors.Is(err, journal.ErrRunning) || two.isLeft(t, "e-read") {
		t.Fatalf("while it runs: %v", err)
	}
	check(t, w.End(n, result(3*pieceSize), nil), w.Flush())
	begin(t, w)
	check(t, one.records.Close())
	testutil.Eventually(t, "the other gateway finds it", time.Minute, func() bool { return two.isLeft(t, "e-read") })
	f, err := two.open("e-read")
	check(t, err)
	if len(f.Calls) != 2 || len(f.Calls[0].Result.Text()) != 3*pieceSize || f.Calls[1].State != journal.Begun {
		t.Errorf("%d calls", len(f.Calls))
	}
	if info, err := os.Stat(journal.Path(two.dir, "e-read")); err != nil || info.ModTime().After(time.Now()) {
		t.Error(info.ModTime(), err)
	}
	check(t, f.End(json.RawMessage(`{}`)), f.Settle(false), f.Close())
	if two.isLeft(t, "e-read") {
		t.Error("it still needs a gateway")
	}
}

// notBegun: a program that ends at once and well has no copy; one that fails has.
func notBegun(t *testing.T, one, two *gateway) {
	t.Helper()
	well, failed := one.create(t, "e-well", one.Gateway()), one.create(t, "e-failed", one.Gateway())
	check(t, well.EndProgram(json.RawMessage(`{}`)), well.SettleSuccess())
	check(t, failed.EndProgram(json.RawMessage(`{}`)), failed.Settle())
	if _, err := two.open("e-well"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	f, err := two.open("e-failed")
	check(t, err)
	check(t, f.Close())
}

// fenced: a gateway that only seems dead makes no further call.
func fenced(t *testing.T, one, two *gateway) {
	t.Helper()
	w := one.create(t, "e-fenced", gone)
	n := begin(t, w)
	check(t, w.End(n, result(1), nil), w.Flush())
	f, err := two.open("e-fenced")
	check(t, err)
	check(t, f.End(json.RawMessage(`{"by":"two"}`)))
	if _, err := w.Begin(journal.Start{Tool: tool.ID{Upstream: "bank", Name: "pay"}, Fence: true}); !errors.Is(err, journal.ErrTaken) {
		t.Errorf("a call: %v", err)
	}
	if err := w.EndProgram(json.RawMessage(`{"by":"one"}`)); !errors.Is(err, journal.ErrTaken) {
		t.Errorf("its end: %v", err)
	}
	check(t, f.Settle(false), f.Close(), w.Close())
	own, err := one.open("e-fenced")
	check(t, err)
	if string(own.Over) != `{"by":"two"}` || len(own.Calls) != 1 || !own.Kept {
		t.Errorf("the file has %s and %d calls", own.Over, len(own.Calls))
	}
	check(t, own.Close())
}

// claimedOnce: of two gateways that resume an execution, one does.
func claimedOnce(t *testing.T, one, two *gateway) {
	t.Helper()
	w := one.create(t, "e-once", gone)
	check(t, w.EndProgram(json.RawMessage(`{}`)), w.Settle())
	a, err := one.open("e-once")
	check(t, err)
	b, err := two.open("e-once")
	check(t, err)
	check(t, a.Resume("e-a"))
	if err := b.Resume("e-b"); !errors.Is(err, journal.ErrTaken) {
		t.Errorf("a second one: %v", err)
	}
	check(t, a.Close(), b.Close())
	b, err = two.open("e-once")
	check(t, err)
	if b.Resumed != "e-a" {
		t.Errorf("resumed by %q", b.Resumed)
	}
	check(t, b.Close())
}

// settledMeanwhile: an execution is resumed although another gateway records it at the same time.
func settledMeanwhile(t *testing.T, one, two *gateway) {
	t.Helper()
	w := one.create(t, "e-settled", gone)
	check(t, w.EndProgram(json.RawMessage(`{}`)), w.Flush(), w.Close())
	a, err := one.open("e-settled")
	check(t, err)
	b, err := two.open("e-settled")
	check(t, err)
	check(t, b.Settle(false), a.Resume("e-a"))
	if err := b.Resume("e-b"); !errors.Is(err, journal.ErrTaken) {
		t.Errorf("a second one: %v", err)
	}
	check(t, a.Close(), b.Close())
	b, err = two.open("e-settled")
	check(t, err)
	if b.Resumed != "e-a" || !b.Kept {
		t.Errorf("resumed by %q", b.Resumed)
	}
	check(t, b.Close())
}

// endMissing: a copy gets what a gateway had written to its file only.
func endMissing(t *testing.T, one, two *gateway) {
	t.Helper()
	w := one.create(t, "e-end", gone)
	n := begin(t, w)
	check(t, w.End(n, result(7), nil), w.Close()) // the copy waits for more
	f, err := one.open("e-end")
	check(t, err)
	check(t, f.Close())
	f, err = two.open("e-end")
	check(t, err)
	if len(f.Calls) != 1 || f.Calls[0].State != journal.Ended {
		t.Errorf("%+v", f.Calls)
	}
	check(t, f.Close())
}

// halfBatch: a batch without an end does not count, and what is written next does.
func halfBatch(t *testing.T, one, two *gateway) {
	t.Helper()
	w := one.create(t, "e-half", gone)
	begin(t, w)
	key := store.Key{"ada", "e-half"}
	_, err := one.log.Append(t.Context(), key, append([]byte{isFirst}, "half of a frame"...))
	check(t, err)
	f, err := two.open("e-half")
	check(t, err)
	check(t, f.End(json.RawMessage(`{}`)), f.Close())
	f, err = one.open("e-half-other")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(f, err)
	}
	loaded, _, err := one.load(t.Context(), key)
	check(t, err)
	if got, err := journal.Parse(loaded.Data); err != nil || len(got.Calls) != 1 || got.Over == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// lostAnswer: a batch that was stored although its sender got no answer is not that of another gateway.
func lostAnswer(t *testing.T, one, _ *gateway) {
	t.Helper()
	c := &journalCopy{of: one.Journals, key: store.Key{"ada", "e-answer"}}
	c.Append([]byte("first"))
	check(t, c.Flush(true))
	_, err := one.append(t.Context(), c.key, c.revision, []byte("second"))
	check(t, err)
	c.Append([]byte("second"))
	check(t, c.Flush(true))
	_, err = one.append(t.Context(), c.key, c.revision, []byte("other"))
	check(t, err)
	c.Append([]byte("third"))
	if err := c.Flush(true); !errors.Is(err, journal.ErrTaken) {
		t.Errorf("after another gateway: %v", err)
	}
	loaded, _, err := one.load(t.Context(), c.key)
	if check(t, err); string(loaded.Data) != "firstsecondother" {
		t.Errorf("%q", loaded.Data)
	}
	check(t, c.Remove())
}

// removed: the copy of a journal is removed with it.
func removed(t *testing.T, one, two *gateway) {
	t.Helper()
	w := one.create(t, "e-removed", one.Gateway())
	begin(t, w)
	check(t, w.Remove())
	if _, err := two.open("e-removed"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// noAnswer: without a server no call is made; with it, the copy gets all.
func noAnswer(t *testing.T, c *natscluster.Cluster) {
	t.Helper()
	one, two := newGateway(t, c), newGateway(t, c)
	w := one.create(t, "e-waits", gone)
	begin(t, w)
	c.Kill(t, 0)
	if _, err := w.Begin(journal.Start{Tool: tool.ID{Upstream: "bank", Name: "pay"}, Fence: true}); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("without a server: %v", err)
	}
	c.Start(t, 0)
	testutil.Eventually(t, "the copy has all", time.Minute, func() bool { return w.Flush() == nil })
	begin(t, w)
	testutil.Eventually(t, "the other gateway has it", time.Minute, func() bool {
		loaded, _, err := two.load(context.WithoutCancel(t.Context()), store.Key{"ada", "e-waits"})
		if err != nil {
			return false
		}
		got, err := journal.Parse(loaded.Data)
		return err == nil && len(got.Calls) == 3
	})
}

// atThreeServers returns the copies of journals at three servers.
func atThreeServers(b *testing.B) *Journals {
	b.Helper()
	c := natscluster.Start(b, 3)
	records, err := store.Connect(store.Remote{Server: c.Server(""), Replicas: 3})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = records.Close() })
	all, err := Open(records, time.Hour, testutil.Logger(b))
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// BenchmarkFence measures a call that is recorded at three servers before it is made.
func BenchmarkFence(b *testing.B) {
	all := atThreeServers(b)
	w, err := journal.Create(b.TempDir(), journal.Header{ID: "e-1"}, nil, &journal.Options{Copy: all.Copy("ada", "e-1")})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		n, err := w.Begin(journal.Start{Tool: tool.ID{Upstream: "bank", Name: "pay"}, Fence: true})
		if err = errors.Join(err, w.End(n, result(100), nil)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecent measures the search for the last programs among 200 copies at three servers.
func BenchmarkRecent(b *testing.B) {
	all := atThreeServers(b)
	for i := range 200 {
		if _, err := all.append(b.Context(), store.Key{"ada", fmt.Sprintf("e-%d", i)}, 0, []byte("a journal")); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if found, err := all.newest(b.Context(), Query{Folder: "ada", Most: 50, Skip: func(string) bool { return false }}); err != nil || len(found) != 50 {
			b.Fatal(len(found), err)
		}
	}
}
