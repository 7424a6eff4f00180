package sharedrecords_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/seal"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// connect returns a store with a key, as a gateway of its own has it.
func connect(t *testing.T, c *natscluster.Cluster, key *seal.Key) *store.Store {
	t.Helper()
	s, err := store.Connect(store.Remote{Server: c.Server(t.Name()), Seal: key, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newKey(t *testing.T) *seal.Key {
	t.Helper()
	k, err := seal.New([]byte(rand.Text() + rand.Text())[:seal.Size])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func open(t *testing.T, s *store.Store) *sharedrecords.Records {
	t.Helper()
	r, err := sharedrecords.OpenSealed(s, "test", store.Limits{Records: 100, Keep: true})
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	return r
}

func TestMain(m *testing.M) {
	natscluster.Serve()
	m.Run()
}

// TestTwoGateways: what one writes is what the other reads, the servers cannot read it, and a write of an old state is refused.
func TestTwoGateways(t *testing.T) {
	c := natscluster.Start(t, 1)
	key := newKey(t)
	in := connect(t, c, key)
	one, two := open(t, in), open(t, connect(t, c, key))
	ctx := t.Context()
	if data, revision, err := two.Get(ctx, false, "ann"); data != nil || revision != 0 || err != nil {
		t.Errorf("of none: %q, %d, %v", data, revision, err)
	}
	if ok, err := one.Put(ctx, []byte("a secret"), 0, "ann"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	data, revision, err := two.Get(ctx, false, "ann")
	if string(data) != "a secret" || err != nil {
		t.Errorf("at the other: %q, %v", data, err)
	}
	bucket, err := in.Bucket(store.PrivatePrefix+"test", store.Limits{Records: 100, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := bucket.Get(ctx, store.Key{"ann"})
	if err != nil || bytes.Contains(raw.Value, []byte("secret")) {
		t.Errorf("the servers can read %q, %v", raw.Value, err)
	}
	if _, err := bucket.Put(ctx, store.Key{"bob"}, raw.Value); err != nil { // a server moves it
		t.Fatal(err)
	}
	if _, _, err := two.Get(ctx, false, "bob"); !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("a record at another place: %v", err)
	}
	if ok, err := two.Put(ctx, []byte("newer"), revision, "ann"); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := one.Put(ctx, []byte("late"), revision, "ann"); ok || err != nil {
		t.Errorf("an old state was written: %v, %v", ok, err)
	}
	if data, _, err := one.Get(ctx, false, "ann"); string(data) != "newer" || err != nil {
		t.Errorf("after a refused write: %q, %v", data, err)
	}
	if err := two.Delete(ctx, "ann"); err != nil {
		t.Error(err)
	}
	if data, _, err := two.Get(ctx, false, "ann"); data != nil || err != nil {
		t.Errorf("deleted: %q, %v", data, err)
	}
	time.Sleep(sharedrecords.Recent)
	if data, _, err := one.Get(ctx, false, "ann"); data != nil || err != nil {
		t.Errorf("deleted at the other, a moment ago: %q, %v", data, err)
	}
	other := open(t, connect(t, c, newKey(t)))
	if ok, err := one.Put(ctx, []byte("x"), 0, "ann"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, _, err := other.Get(ctx, false, "ann"); !errors.Is(err, seal.ErrOtherKey) {
		t.Errorf("a gateway with another key: %v", err)
	}
}

func TestNoKey(t *testing.T) {
	c := natscluster.Start(t, 1)
	if r, err := sharedrecords.OpenSealed(connect(t, c, nil), "test", store.Limits{}); r != nil || err != nil {
		t.Errorf("private records without a key: %v, %v", r, err)
	}
}

// TestLock: of callers at two gateways, one at a time has the lock, and that of a gateway that has ended is free.
func TestLock(t *testing.T) {
	c := natscluster.Start(t, 1)
	key := newKey(t)
	stores := []*store.Store{connect(t, c, key), connect(t, c, key)}
	all := []*sharedrecords.Records{open(t, stores[0]), open(t, stores[1])}
	var inside, most atomic.Int32
	var work sync.WaitGroup
	for i := range 8 {
		r := all[i%2]
		work.Go(func() {
			for range 5 {
				unlock, err := r.Lock(t.Context(), "ann")
				if err != nil {
					t.Error(err)
					return
				}
				if now := inside.Add(1); now > most.Load() {
					most.Store(now)
				}
				data, revision, err := r.Get(t.Context(), true, "count")
				n, _ := strconv.Atoi(string(data)) // 0 at first
				if ok, putErr := r.Put(t.Context(), fmt.Append(nil, n+1), revision, "count"); !ok || err != nil || putErr != nil {
					t.Error(ok, err, putErr)
				}
				inside.Add(-1)
				unlock()
			}
		})
	}
	work.Wait()
	if data, _, err := open(t, stores[0]).Get(t.Context(), true, "count"); string(data) != "40" || most.Load() != 1 || err != nil {
		t.Errorf("%q, at most %d at once, %v", data, most.Load(), err)
	}
	unlock, err := open(t, stores[0]).Lock(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	r := open(t, stores[1])
	brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.Lock(brief, "bob"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the lock of another: %v", err)
	}
	if err := stores[0].Close(); err != nil {
		t.Fatal(err)
	}
	free, err := r.Lock(t.Context(), "bob")
	if err != nil {
		t.Fatalf("the lock of a gateway that has ended: %v", err)
	}
	free()
}

// TestOutage: while the store does not answer, what was read a moment ago is known, the rest and all changes are errors.
func TestOutage(t *testing.T) {
	c := natscluster.Start(t, 1)
	key := newKey(t)
	r := open(t, connect(t, c, key))
	ctx := t.Context()
	if ok, err := r.Put(ctx, []byte("known"), 0, "ann"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	c.Kill(t, 0)
	time.Sleep(sharedrecords.Recent)
	if data, _, err := r.Get(ctx, false, "ann"); string(data) != "known" || err != nil {
		t.Errorf("what was known: %q, %v", data, err)
	}
	if _, _, err := r.Get(ctx, true, "ann"); err == nil {
		t.Error("what the store has now is known without it")
	}
	if _, _, err := r.Get(ctx, false, "bob"); err == nil {
		t.Error("that there is no record is known without the store")
	}
	if ok, err := r.Put(ctx, []byte("x"), 0, "bob"); ok || err == nil {
		t.Error("written without the store")
	}
	if err := r.Delete(ctx, "ann"); err == nil {
		t.Error("deleted without the store")
	}
	if data, _, err := r.Get(ctx, false, "ann"); err == nil {
		t.Errorf("used after its deletion: %q", data)
	}
	c.Start(t, 0)
	for {
		data, _, err := r.Get(ctx, false, "ann")
		if err == nil {
			if string(data) != "known" {
				t.Errorf("%q", data)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestPause: servers that do not answer for some seconds, as while they elect a leader, lose nothing.
func TestPause(t *testing.T) {
	c := natscluster.Start(t, 1)
	r := open(t, connect(t, c, newKey(t)))
	if ok, err := r.Put(t.Context(), []byte("a"), 0, "ann"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	c.Signal(t, 0, syscall.SIGSTOP)
	time.AfterFunc(3500*time.Millisecond, func() { c.Signal(t, 0, syscall.SIGCONT) })
	if ok, err := r.Put(t.Context(), []byte("b"), 0, "bob"); !ok || err != nil {
		t.Errorf("a record that is written meanwhile: %t, %v", ok, err)
	}
	if data, _, err := r.Get(t.Context(), true, "ann"); string(data) != "a" || err != nil {
		t.Errorf("one that is read then: %q, %v", data, err)
	}
}

// TestKeyRotation: a key that others do not have is found. With it as a second key nothing changes, and when it becomes the first one, all
// is sealed with it, so that the old one can be removed.
func TestKeyRotation(t *testing.T) {
	c := natscluster.Start(t, 1)
	old, fresh := []byte(rand.Text() + rand.Text())[:seal.Size], []byte(rand.Text() + rand.Text())[:seal.Size]
	with := func(key []byte, older ...[]byte) *store.Store {
		t.Helper()
		k, err := seal.New(key, older...)
		if err != nil {
			t.Fatal(err)
		}
		return connect(t, c, k)
	}
	ctx, first := t.Context(), with(old)
	for _, s := range []*store.Store{first, with(old), with(old, fresh)} {
		if err := sharedrecords.CheckKey(ctx, s); err != nil {
			t.Error(err)
		}
	}
	if err := sharedrecords.CheckKey(ctx, with(fresh)); !errors.Is(err, sharedrecords.ErrKey) {
		t.Errorf("another key: %v", err)
	}
	for i := range 5 {
		if ok, err := open(t, first).Put(ctx, []byte("a login"), 0, fmt.Sprint(i)); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	next := with(fresh, old)
	if err := sharedrecords.CheckKey(ctx, next); err != nil {
		t.Error(err)
	}
	for i, want := range []int{5, 0} {
		if n, err := open(t, next).Reseal(ctx); n != want || err != nil {
			t.Errorf("pass %d: %d are sealed again, %v", i, n, err)
		}
	}
	last := with(fresh)
	if err := sharedrecords.CheckKey(ctx, last); err != nil {
		t.Error(err)
	}
	for i := range 5 {
		if data, _, err := open(t, last).Get(ctx, true, fmt.Sprint(i)); string(data) != "a login" || err != nil {
			t.Errorf("without the old key: %q, %v", data, err)
		}
	}
	if data, _, err := open(t, first).Get(ctx, true, "0"); !errors.Is(err, seal.ErrOtherKey) {
		t.Errorf("with the old key only: %q, %v", data, err)
	}
}
