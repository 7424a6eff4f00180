package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/store"
)

// TestUnfinishedStream: the records of a stream are kept when the engine was killed while it created the stream, between the two files of
// its metadata. The engine itself neither opens such a stream nor completes its metadata.
func TestUnfinishedStream(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, sum, mark string){
		"killed before it was used": func(t *testing.T, sum, mark string) { t.Helper(); removeAll(t, sum, mark) },
		"used by an earlier version": func(t *testing.T, sum, mark string) {
			t.Helper()
			removeAll(t, sum)
			if err := os.WriteFile(mark, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			use := func(key string, wants ...string) {
				t.Helper()
				s := open(t, dir)
				_, bucket := places(s)
				for _, want := range wants {
					if _, err := bucket.Get(t.Context(), store.Key{"p", want}); err != nil {
						t.Errorf("%s: %v", want, err)
					}
				}
				put(t, bucket, key, "{}")
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			use("first")
			sums, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "*", "streams", "bucket_crash", "meta.sum"))
			if err != nil || len(sums) != 1 {
				t.Fatal(sums, err)
			}
			prepare(t, sums[0], filepath.Join(dir, "made", "bucket_crash"))
			if found, err := store.Check(t.Context(), dir); err != nil || len(found) > 0 {
				t.Errorf("damage %+v, %v", found, err)
			}
			use("second", "first")
			use("third", "first", "second")
			if found, err := store.Check(t.Context(), dir); err != nil || len(found) > 0 {
				t.Errorf("damage at the end %+v, %v", found, err)
			}
		})
	}
}

func removeAll(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
