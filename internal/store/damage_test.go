package store_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/store"
)

// damagedDir has a bucket of 12 records, of which k3 was written twice and k4 deleted, and a log of 8; and the two blocks of them.
func damagedDir(t *testing.T) (dir string, blocks []string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir)
	log, bucket := places(s)
	for i := range 12 {
		put(t, bucket, fmt.Sprintf("k%d", i), fmt.Sprintf(`{"n":%d}`, i))
	}
	put(t, bucket, "k3", `{"n":33}`)
	if err := bucket.Delete(t.Context(), store.Key{"p", "k4"}, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if _, err := log.Append(t.Context(), store.Key{"run"}, fmt.Appendf(nil, `{"event":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil || len(blocks) != 2 {
		t.Fatal(blocks, err)
	}
	return dir, blocks
}

func put(t *testing.T, bucket *store.Bucket, key, value string) {
	t.Helper()
	if _, err := bucket.Put(t.Context(), store.Key{"p", key}, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// spoil changes bytes of a file.
func spoil(t *testing.T, path string, at int, mask ...byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mask {
		if at+i < len(data) {
			data[at+i] ^= m
		}
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamage: whichever bytes of the blocks are damaged, what was in them is told by its key, no older value of it comes back, and all
// else is there, after an open and in a second one. One byte costs nothing.
func TestDamage(t *testing.T) {
	t.Parallel()
	whole, blocks := damagedDir(t)
	block, _ := filepath.Rel(whole, blocks[0])
	size := fileSize(t, blocks[0])
	for _, test := range []struct {
		name       string
		mask       []byte
		most, step int
	}{
		{"bit", []byte{0x10}, 0, 41},
		{"byte", []byte{0x5a}, 0, 59},
		{"word", []byte("\xff\x13\x55\x01\x99"), 2, 31},
	} {
		for at := 0; at < size; at += test.step {
			t.Run(fmt.Sprint(test.name, at), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				spoil(t, filepath.Join(dir, block), at, test.mask...)
				for range 2 {
					missing, told, unknown := reopened(t, dir)
					if len(missing) > test.most || len(told)+unknown > test.most {
						t.Errorf("missing or old %v, told %v and %d without a key", missing, told, unknown)
					}
					untold := slices.DeleteFunc(missing, func(key string) bool { return slices.Contains(told, key) })
					if len(untold) > unknown {
						t.Errorf("%v not told", untold)
					}
				}
			})
		}
	}
}

func fileSize(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

// reopened returns the keys of damagedDir's bucket that have not their last value, those that are told to be lost, and how many are without a key.
func reopened(t *testing.T, dir string) (missing, told []string, unknown int) {
	t.Helper()
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	_, bucket := places(s)
	found := map[string]string{}
	for e, err := range bucket.List(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		found[strings.Join(e.Key, "/")] = string(e.Value)
	}
	for i := range 12 {
		key, want := fmt.Sprintf("p/k%d", i), fmt.Sprintf(`{"n":%d}`, i)
		if i == 3 {
			want = `{"n":33}`
		}
		if i == 4 {
			want = ""
		}
		if found[key] != want {
			missing = append(missing, key)
		}
	}
	lost, err := s.ListDamage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range lost {
		switch {
		case d.Restored:
		case d.Key == nil:
			unknown++
		default:
			told = append(told, strings.Join(d.Key, "/"))
		}
	}
	return missing, told, unknown
}

// TestDamagedAbout: what the engine says about a stream is put back.
func TestDamagedAbout(t *testing.T) {
	t.Parallel()
	dir, blocks := damagedDir(t)
	spoil(t, filepath.Join(filepath.Dir(filepath.Dir(blocks[0])), "meta.inf"), 20, 1, 2, 3)
	if missing, _, _ := reopened(t, dir); len(missing) > 0 {
		t.Errorf("missing %v", missing)
	}
	found, err := store.Check(t.Context(), dir)
	if err != nil || len(found) != 1 || !found[0].Whole || !found[0].Restored {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestCheck: damage is found beside a store that writes, and nothing is changed; without damage there is none.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir, blocks := damagedDir(t)
	s := open(t, dir)
	_, bucket := places(s)
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = bucket.Put(ctx, store.Key{"p", fmt.Sprint("k", i%12)}, bytes.Repeat([]byte("x"), i%5000))
		}
	}()
	for range 20 {
		if found, err := store.Check(t.Context(), dir); err != nil || len(found) > 0 {
			t.Fatalf("%v, %v", found, err)
		}
	}
	cancel()
	<-written
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, blocks[1], 40, 1, 2, 3)
	spoiled := readFile(t, blocks[1])
	found, err := store.Check(t.Context(), dir)
	if err != nil || len(found) != 1 || found[0].String() != "log_crash run" {
		t.Errorf("%v, %v", found, err)
	}
	if !bytes.Equal(readFile(t, blocks[1]), spoiled) {
		t.Error("it was changed")
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// BenchmarkCheck says what a look at all records costs.
func BenchmarkCheck(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	log, _ := places(s)
	for range 2000 {
		if _, err := log.Append(b.Context(), store.Key{"run"}, make([]byte, 16<<10)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(2000 * 16 << 10)
	for b.Loop() {
		if _, err := store.Check(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
	}
}
