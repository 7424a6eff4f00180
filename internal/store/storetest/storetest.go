// Package storetest is the conformance test of a [store.Store].
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/natsconn"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
)

// Connect returns a store on servers. It is closed when the test ends, if the test has not closed it.
func Connect(t testing.TB, server natsconn.Server) *store.Store {
	t.Helper()
	return ConnectRemote(t, store.Remote{Server: server})
}

// ConnectRemote is Connect with options.
func ConnectRemote(t testing.TB, set store.Remote) *store.Store {
	t.Helper()
	set.Logger = testutil.Logger(t)
	s, err := store.Connect(set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Run tests a store; open returns a new, empty one. Each part uses its own names, so that all may share a store.
func Run(t *testing.T, open func(t *testing.T) *store.Store) {
	t.Helper()
	s := open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		closing(t, s)
	})
	for _, part := range []struct {
		name string
		run  func(t *testing.T, s *store.Store)
	}{
		{"bucket", bucket}, {"keys", keys}, {"limits", limits}, {"log", log}, {"lasts", lasts}, {"lasts removed", lastsRemoved}, {"fence", fence}, {"follow", follow}, {"names", names}, {"deleted", deletion}, {"kept", keepLimit}, {"removed", removal}, {"trimmed", trimmed}, {"schedules", schedules},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, s) })
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func want(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
	}
}

// lastsRemoved: a record that is removed while the newest ones are listed does not delay the list.
func lastsRemoved(t *testing.T, s *store.Store) {
	t.Helper()
	l := must[*store.Log](t)(s.Log("lasts_removed", store.Limits{}))
	must[uint64](t)(l.Append(t.Context(), store.Key{"ada", "kept"}, []byte("a")))
	key := store.Key{"ada", "removed"}
	for range 40 {
		must[uint64](t)(l.Append(t.Context(), key, []byte("b")))
		var removed sync.WaitGroup
		removed.Go(func() {
			if err := l.Remove(t.Context(), key); err != nil {
				t.Error(err)
			}
		})
		limited, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		found, err := l.Lasts(limited, store.Key{"ada"})
		cancel()
		removed.Wait()
		if err != nil || len(found) == 0 || found[0].Key[1] != "kept" {
			t.Fatalf("%+v, %v", found, err)
		}
	}
}

// lasts: the newest record of each key of a prefix, the oldest first.
func lasts(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	l := must[*store.Log](t)(s.Log("lasts", store.Limits{}))
	newest := func(who string) (values []string) {
		for _, e := range must[[]store.Entry](t)(l.Lasts(ctx, store.Key{who})) {
			if last := must[store.Entry](t)(l.Last(ctx, e.Key)); last.Revision != e.Revision || !last.Time.Equal(e.Time) {
				t.Errorf("%q: %+v, the last is %+v", e.Key, e, last)
			}
			values = append(values, strings.Join(e.Key, "/")+"="+string(e.Value))
		}
		return values
	}
	if got := newest("ada"); len(got) > 0 {
		t.Errorf("of none: %q", got)
	}
	for _, one := range []string{"ada/1=a", "bob/1=b", "ada/2=c", "ada/3=d", "ada/1=e", "adam/1=f", "ada/1=g", "bob/1=h"} {
		key, value, _ := strings.Cut(one, "=")
		must[uint64](t)(l.Append(ctx, store.Key(strings.Split(key, "/")), []byte(value)))
	}
	if got := newest("ada"); !slices.Equal(got, []string{"ada/2=c", "ada/3=d", "ada/1=g"}) {
		t.Errorf("the last ones: %q", got)
	}
	if err := l.Remove(ctx, store.Key{"ada", "3"}); err != nil {
		t.Fatal(err)
	}
	if got := newest("ada"); !slices.Equal(got, []string{"ada/2=c", "ada/1=g"}) {
		t.Errorf("the last ones after one was removed: %q", got)
	}
}

func bucket(t *testing.T, s *store.Store) {
	t.Helper()
	ctx, key := t.Context(), store.Key{"ada", "one"}
	b := must[*store.Bucket](t)(s.Bucket("basic", store.Limits{}))
	_, err := b.Get(ctx, key)
	want(t, err, store.ErrNotFound)
	first := must[uint64](t)(b.Create(ctx, key, []byte("1")))
	_, err = b.Create(ctx, key, []byte("2"))
	want(t, err, store.ErrConflict)
	second := must[uint64](t)(b.Update(ctx, key, []byte("2"), first))
	for _, stale := range []uint64{0, first, second + 1, 1 << 63} {
		_, err = b.Update(ctx, key, []byte("x"), stale)
		want(t, err, store.ErrConflict)
	}
	third := must[uint64](t)(b.Put(ctx, key, nil))
	if first >= second || second >= third {
		t.Errorf("revisions %d, %d, %d", first, second, third)
	}
	e := must[store.Entry](t)(b.Get(ctx, key))
	if len(e.Value) != 0 || e.Revision != third || !slices.Equal(e.Key, key) || time.Since(e.Time).Abs() > time.Hour {
		t.Errorf("%+v", e)
	}
	_, err = b.Put(ctx, key, make([]byte, 2<<20+1))
	want(t, err, store.ErrInvalid)
	large := bytes.Repeat([]byte("x"), 2<<20)
	must[uint64](t)(b.Put(ctx, key, large))
	if e := must[store.Entry](t)(b.Get(ctx, key)); !bytes.Equal(e.Value, large) {
		t.Errorf("%d bytes", len(e.Value))
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.Put(gone, key, []byte("late")); err == nil {
		t.Error("written for somebody who has gone")
	}
}

func deletion(t *testing.T, s *store.Store) {
	t.Helper()
	ctx, key := t.Context(), store.Key{"a", "b"}
	b := must[*store.Bucket](t)(s.Bucket("deleted", store.Limits{}))
	if err := b.Delete(ctx, key, 0); err != nil {
		t.Error(err)
	}
	first := must[uint64](t)(b.Put(ctx, key, []byte("1")))
	want(t, b.Delete(ctx, key, first+1), store.ErrConflict)
	if err := b.Delete(ctx, key, first); err != nil {
		t.Fatal(err)
	}
	_, err := b.Get(ctx, key)
	want(t, err, store.ErrNotFound)
	_, err = b.Update(ctx, key, []byte("2"), first)
	want(t, err, store.ErrConflict)
	if got := list(t, b, nil); got != nil {
		t.Errorf("what was deleted is listed: %q", got)
	}
	again := must[uint64](t)(b.Create(ctx, key, []byte("3")))
	if again <= first {
		t.Errorf("revision %d after %d", again, first)
	}
	_, err = b.Create(ctx, key, []byte("4"))
	want(t, err, store.ErrConflict)
	if err := b.Delete(ctx, key, 0); err != nil {
		t.Error(err)
	}
	_, err = b.Get(ctx, key)
	want(t, err, store.ErrNotFound)
}

// odd are key parts that might be confused with others.
var odd = []string{"", "a", "A", "a.b", "a b", "*", ">", "a.>", "=YQ", "=", "$JS", "..", "/", "../a", "a\x00", "\xff\xfe", "\r\n", "\u00e9", "e\u0301", "CON", strings.Repeat("x", 900)}

func keys(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	b := must[*store.Bucket](t)(s.Bucket("keys", store.Limits{}))
	for i, part := range odd {
		must[uint64](t)(b.Create(ctx, store.Key{"p", part}, []byte{byte(i)}))
		must[uint64](t)(b.Create(ctx, store.Key{part, "below"}, []byte{byte(i)}))
	}
	for i, part := range odd {
		if e := must[store.Entry](t)(b.Get(ctx, store.Key{"p", part})); e.Value[0] != byte(i) {
			t.Errorf("%q has the value of %q", part, odd[e.Value[0]])
		}
		if got := list(t, b, store.Key{part}); !slices.EqualFunc(got, []store.Key{{part, "below"}}, slices.Equal) {
			t.Errorf("below %q: %q", part, got)
		}
	}
	var all []store.Key
	for _, part := range odd {
		all = append(all, store.Key{"p", part})
	}
	several := 0
	for e, err := range b.List(ctx, store.Key{"p"}) { // each is rewritten during the iteration
		must[uint64](t)(b.Put(ctx, e.Key, must[[]byte](t)(e.Value, err)))
		several++
	}
	if several != len(odd) {
		t.Errorf("%d of %d are listed while they change", several, len(odd))
	}
	if got := list(t, b, store.Key{"p"}); !slices.EqualFunc(got, all, slices.Equal) {
		t.Errorf("%q", got)
	}
	for _, key := range []store.Key{nil, {}, {strings.Repeat("x", 1025)}, {"1", "2", "3", "4", "5", "6", "7", "8", "9"}} {
		_, err := b.Put(ctx, key, nil)
		want(t, err, store.ErrInvalid)
		_, err = b.Get(ctx, key)
		want(t, err, store.ErrInvalid)
	}
}

func list(t *testing.T, b *store.Bucket, prefix store.Key) (found []store.Key) {
	t.Helper()
	for e, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, e.Key)
	}
	return found
}

// limits: the oldest are dropped, by number, by size and by age.
func limits(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	few := must[*store.Bucket](t)(s.Bucket("few", store.Limits{Records: 3}))
	small := must[*store.Log](t)(s.Log("small", store.Limits{Bytes: 4 << 10}))
	for i := range 8 {
		must[uint64](t)(few.Put(ctx, store.Key{fmt.Sprint(i)}, nil))
		must[uint64](t)(small.Append(ctx, store.Key{"k"}, make([]byte, 1<<10)))
	}
	must[uint64](t)(few.Put(ctx, store.Key{"7"}, nil)) // in place of one
	if got := list(t, few, nil); !slices.EqualFunc(got, []store.Key{{"5"}, {"6"}, {"7"}}, slices.Equal) {
		t.Errorf("kept %q", got)
	}
	if got := read(t, small, nil, 0); len(got) < 2 || len(got) > 3 {
		t.Errorf("%d KiB are kept in 4 KiB", len(got))
	}
	brief := must[*store.Bucket](t)(s.Bucket("brief", store.Limits{Age: 300 * time.Millisecond}))
	must[uint64](t)(brief.Put(ctx, store.Key{"k"}, nil))
	for {
		_, err := brief.Get(ctx, store.Key{"k"})
		if errors.Is(err, store.ErrNotFound) {
			return
		}
		if err != nil {
			t.Fatal(err) // or it never goes, and the test's time is over
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// keepLimit: a place with Limits.Keep rejects what does not fit, and accepts it when there is room again.
func keepLimit(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	few := must[*store.Bucket](t)(s.Bucket("kept_few", store.Limits{Records: 2, Keep: true}))
	small := must[*store.Log](t)(s.Log("kept_small", store.Limits{Bytes: 4 << 10, Keep: true}))
	must[uint64](t)(few.Put(ctx, store.Key{"a"}, nil))
	must[uint64](t)(few.Put(ctx, store.Key{"b"}, nil))
	_, err := few.Put(ctx, store.Key{"c"}, nil)
	want(t, err, store.ErrFull)
	must[uint64](t)(few.Put(ctx, store.Key{"a"}, []byte("in place of one")))
	if got := list(t, few, nil); !slices.EqualFunc(got, []store.Key{{"b"}, {"a"}}, slices.Equal) {
		t.Errorf("kept %q", got)
	}
	var last uint64
	for range 20 {
		n, err := small.AppendAfter(ctx, store.Key{"k"}, last, make([]byte, 1<<10))
		if errors.Is(err, store.ErrFull) {
			break
		}
		last = must[uint64](t)(n, err)
	}
	got := read(t, small, nil, 0)
	if u := must[store.Usage](t)(small.Usage(ctx)); len(got) < 2 || len(got) > 3 || u.Records != len(got) || u.Share < 0.5 || u.Share > 1 {
		t.Errorf("%d KiB are kept in 4 KiB: %+v", len(got), u)
	}
	if err := small.Remove(ctx, store.Key{"k"}); err != nil {
		t.Error(err)
	}
	must[uint64](t)(small.AppendAfter(ctx, store.Key{"k"}, 0, make([]byte, 1<<10)))
}

// removal: a removed key leaves no records, and other keys are unaffected.
func removal(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	l := must[*store.Log](t)(s.Log("removed", store.Limits{}))
	for i := range 3 {
		must[uint64](t)(l.Append(ctx, store.Key{"run 1"}, fmt.Append(nil, i)))
		must[uint64](t)(l.Append(ctx, store.Key{"run 2"}, fmt.Append(nil, i)))
	}
	for range 2 { // the second time there is nothing
		if err := l.Remove(ctx, store.Key{"run 1"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, l, nil, 0); strings.Join(got, "") != "012" {
		t.Errorf("%q are left", got)
	}
	if got := must[[]store.Key](t)(l.Keys(ctx)); !slices.EqualFunc(got, []store.Key{{"run 2"}}, slices.Equal) {
		t.Errorf("keys %q", got)
	}
	_, err := l.Last(ctx, store.Key{"run 1"})
	want(t, err, store.ErrNotFound)
	must[uint64](t)(l.AppendAfter(ctx, store.Key{"run 1"}, 0, nil))
}

func read(t *testing.T, l *store.Log, key store.Key, from uint64) (values []string) {
	t.Helper()
	for e, err := range l.Read(t.Context(), key, from) {
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(e.Value))
	}
	return values
}

func log(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	l := must[*store.Log](t)(s.Log("plain", store.Limits{}))
	run, other := store.Key{"run 1"}, store.Key{"run 2"}
	_, err := l.Last(ctx, run)
	want(t, err, store.ErrNotFound)
	var revisions []uint64
	for i := range 5 {
		revisions = append(revisions, must[uint64](t)(l.Append(ctx, run, fmt.Append(nil, i))))
		must[uint64](t)(l.Append(ctx, other, []byte("x")))
	}
	if got := read(t, l, run, 0); strings.Join(got, "") != "01234" {
		t.Errorf("%q", got)
	}
	if got := read(t, l, run, revisions[3]); strings.Join(got, "") != "34" {
		t.Errorf("from the fourth: %q", got)
	}
	if got := read(t, l, nil, revisions[3]); strings.Join(got, "") != "3x4x" {
		t.Errorf("all from the fourth: %q", got)
	}
	if e := must[store.Entry](t)(l.Last(ctx, run)); string(e.Value) != "4" || e.Revision != revisions[4] {
		t.Errorf("last is %+v", e)
	}
	if got := read(t, l, store.Key{"run"}, 0); got != nil {
		t.Errorf("a run of that name: %q", got)
	}
}

// fence: of many concurrent appends after the same record, one succeeds.
func fence(t *testing.T, s *store.Store) {
	t.Helper()
	ctx, key := t.Context(), store.Key{"run"}
	l := must[*store.Log](t)(s.Log("fenced", store.Limits{}))
	_, err := l.AppendAfter(ctx, key, 7, nil)
	want(t, err, store.ErrConflict)
	var last uint64
	for range 5 {
		var won atomic.Uint64
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() {
				n, err := l.AppendAfter(ctx, key, last, nil)
				switch {
				case err == nil && !won.CompareAndSwap(0, n):
					t.Error("two have appended after the same record")
				case err != nil && !errors.Is(err, store.ErrConflict):
					t.Error(err)
				}
			})
		}
		work.Wait()
		must[uint64](t)(l.Append(ctx, store.Key{"another"}, nil)) // does not affect this key
		if last = won.Load(); last == 0 {
			t.Fatal("nobody could append")
		}
	}
	if got := read(t, l, key, 0); len(got) != 5 {
		t.Errorf("%d records", len(got))
	}
}

func follow(t *testing.T, s *store.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := must[*store.Log](t)(s.Log("followed", store.Limits{}))
	must[uint64](t)(l.Append(ctx, store.Key{"a"}, []byte("1")))
	second := must[uint64](t)(l.Append(ctx, store.Key{"a"}, []byte("2")))
	seen, ended := make(chan string, 10), make(chan error, 1)
	go func() {
		ended <- l.Follow(ctx, store.Key{"a"}, second, func(e store.Entry) error { seen <- string(e.Value); return nil })
	}()
	got := []string{<-seen}
	must[uint64](t)(l.Append(ctx, store.Key{"b"}, []byte("of another")))
	for _, v := range []string{"3", "4"} {
		must[uint64](t)(l.Append(ctx, store.Key{"a"}, []byte(v)))
		got = append(got, <-seen)
	}
	if !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("followed %q", got)
	}
	cancel()
	want(t, <-ended, context.Canceled)
	enough := errors.New("enough")
	want(t, l.Follow(t.Context(), nil, 0, func(store.Entry) error { return enough }), enough)
}

func names(t *testing.T, s *store.Store) {
	t.Helper()
	for _, name := range []string{"", "A", "a.b", "a-b", "../a", "1a", "a b", ">", strings.Repeat("a", 33)} {
		_, err := s.Bucket(name, store.Limits{})
		want(t, err, store.ErrInvalid)
		_, err = s.Log(name, store.Limits{})
		want(t, err, store.ErrInvalid)
	}
	ctx := t.Context() // a log and a bucket of one name have nothing in common
	must[uint64](t)(must[*store.Log](t)(s.Log("same", store.Limits{})).Append(ctx, store.Key{"k"}, nil))
	_, err := must[*store.Bucket](t)(s.Bucket("same", store.Limits{})).Get(ctx, store.Key{"k"})
	want(t, err, store.ErrNotFound)
}

func closing(t *testing.T, s *store.Store) {
	t.Helper()
	b := must[*store.Bucket](t)(s.Bucket("basic", store.Limits{}))
	_, err := b.Get(context.Background(), store.Key{"k"})
	want(t, err, store.ErrClosed)
	if err := s.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}
