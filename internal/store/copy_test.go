package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/store"
)

// TestCopy: a copy made while records are written, and old ones go, has all that was acknowledged before, and no hole.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	limits := store.Limits{Records: 1000, Bytes: 1 << 20} // blocks come and go
	log, err := s.Log("copied", limits)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var acknowledged atomic.Int64
	var work sync.WaitGroup
	write := func(i int64) error {
		_, err := log.Append(t.Context(), store.Key{"k"}, fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", 2000)))
		acknowledged.Store(i)
		return err
	}
	for i := range int64(800) {
		if err := write(i); err != nil {
			t.Fatal(err)
		}
	}
	work.Go(func() {
		for i := int64(800); ctx.Err() == nil; i++ {
			if err := write(i); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer work.Wait()
	defer cancel()
	for range 3 {
		known, to := acknowledged.Load(), filepath.Join(t.TempDir(), "copy")
		if err := store.Copy(t.Context(), dir, to); err != nil {
			t.Fatal(err)
		}
		after := acknowledged.Load()
		copied, err := open(t, to).Log("copied", limits)
		if err != nil {
			t.Fatal(err)
		}
		checkCopied(t, copied, known, after)
	}
	if err := store.Copy(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "copy")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}

func checkCopied(t *testing.T, copied *store.Log, known, after int64) {
	t.Helper()
	first, last := int64(-1), int64(-1)
	for e, err := range copied.Read(t.Context(), nil, 0) {
		if err != nil {
			t.Fatal(err)
		}
		number, _, _ := strings.Cut(string(e.Value), " ")
		i, err := strconv.ParseInt(number, 10, 64)
		if err != nil || last >= 0 && i != last+1 {
			t.Fatalf("%d follows %d, %v", i, last, err)
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if last < known || last > after+1 || last-first < 100 {
		t.Errorf("%d to %d are copied; %d were acknowledged before, %d afterwards", first, last, known, after)
	}
}

// TestCopySchedules: what is set comes in a copy too, also what was set while the copy was made.
func TestCopySchedules(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	schedules, err := open(t, dir).Schedules("copied")
	if err != nil {
		t.Fatal(err)
	}
	set := func(i int) {
		if err := schedules.At(t.Context(), store.Key{fmt.Sprint(i)}, time.Now().Add(time.Duration(i)*20*time.Millisecond), nil); err != nil {
			t.Error(err)
		}
	}
	for i := range 10 {
		set(i)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for i := 10; i < 30; i++ {
			set(i)
		}
	})
	if err := store.Copy(t.Context(), dir, to); err != nil {
		t.Fatal(err)
	}
	work.Wait()
	copied, err := open(t, to).Schedules("copied")
	if err != nil {
		t.Fatal(err)
	}
	due, enough := 0, errors.New("enough")
	if err := copied.Listen(t.Context(), func(store.Firing) error {
		if due++; due == 10 {
			return enough
		}
		return nil
	}); !errors.Is(err, enough) {
		t.Error(err)
	}
}
