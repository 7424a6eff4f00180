package store_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) *store.Store { return store.Memory() })
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) *store.Store {
		t.Helper()
		return open(t, t.TempDir())
	})
}

func open(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// TestOneAtATime: a directory that is open is not opened again, and the error says by whom; after Close it is.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	_, err := store.Open(dir, nil)
	if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("%s is in use by process %d", dir, os.Getpid())) {
		t.Errorf("error %v", err)
	}
	if used := store.InUse(dir); used == nil || used.PID != os.Getpid() {
		t.Errorf("in use by %v", used)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if used := store.InUse(dir); used != nil {
		t.Errorf("closed, and in use by %v", used)
	}
	open(t, dir)
}

func BenchmarkRecord(b *testing.B) {
	s := open(b, b.TempDir())
	bucket, err := s.Bucket("bench", store.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := s.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Logf("ready after %v", time.Since(start))
	value := make([]byte, 4<<10)
	for i := 0; b.Loop(); i++ {
		if _, err := bucket.Put(b.Context(), store.Key{"p", fmt.Sprint(i)}, value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	s := open(b, b.TempDir())
	bucket, err := s.Bucket("bench", store.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 4<<10)
	for i := range 2000 {
		if _, err := bucket.Put(b.Context(), store.Key{"p", fmt.Sprint(i)}, value); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		for _, err := range bucket.List(b.Context(), nil) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
