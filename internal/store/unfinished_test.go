package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// creatorDir is the variable that makes the test binary create buckets in its directory.
const creatorDir = "STORE_CREATOR"

// createBuckets creates buckets, each with a record, until it is killed, and says which records are acknowledged.
func createBuckets(dir string) error {
	s, err := store.Open(dir, nil)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		bucket, err := s.Bucket(fmt.Sprintf("bucket%d", i), store.Limits{})
		if err != nil {
			return err
		}
		if _, err := bucket.Put(context.Background(), store.Key{"made"}, []byte("{}")); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// TestKilledInCreation: a process that creates buckets is killed at any moment, again and again: the next one uses them all.
func TestKilledInCreation(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			most := 0
			for life := range 5 {
				made := killedWriter(t, creatorDir, dir, most+life, time.Duration(rand.IntN(15_000))*time.Microsecond)
				most = max(most, len(made))
			}
			s := open(t, dir)
			for i := range most {
				bucket, err := s.Bucket(fmt.Sprintf("bucket%d", i), store.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := bucket.Get(t.Context(), store.Key{"made"}); err != nil {
					t.Errorf("bucket %d of %d: %v", i, most, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
