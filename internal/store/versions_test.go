package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/backup"
	"sallyport/internal/store"
	"sallyport/internal/testutil/golden"
)

// versionStore is a store with records of each kind.
type versionStore struct {
	*store.Store
	bucket    *store.Bucket
	log       *store.Log
	schedules *store.Schedules
}

func openVersion(t *testing.T, dir string) versionStore {
	t.Helper()
	s := versionStore{Store: open(t, dir)}
	var err error
	if s.bucket, err = s.Bucket("things", store.Limits{}); err != nil {
		t.Fatal(err)
	}
	if s.log, err = s.Log("events", store.Limits{}); err != nil {
		t.Fatal(err)
	}
	if s.schedules, err = s.Schedules("alarms"); err != nil {
		t.Fatal(err)
	}
	return s
}

// fillVersion writes records of each kind.
func fillVersion(t *testing.T, dir string) {
	t.Helper()
	s := openVersion(t, dir)
	for i := range 3 {
		if _, err := s.bucket.Put(t.Context(), store.Key{"thing", fmt.Sprint(i)}, fmt.Appendf(nil, "value %d", i)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.log.Append(t.Context(), store.Key{"event"}, fmt.Appendf(nil, "event %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.schedules.At(t.Context(), store.Key{"alarm"}, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), []byte("ring")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// readVersion returns the records of fillVersion as text.
func readVersion(t *testing.T, dir string) string {
	t.Helper()
	s := openVersion(t, dir)
	var lines []string
	for e, err := range s.bucket.List(t.Context(), nil) {
		lines = append(lines, fmt.Sprintf("%v %s %v", e.Key, e.Value, err))
	}
	slices.Sort(lines)
	for e, err := range s.log.Read(t.Context(), nil, 0) {
		lines = append(lines, fmt.Sprintf("%v %s %v", e.Key, e.Value, err))
	}
	for e := range s.schedules.List(t.Context()) {
		lines = append(lines, fmt.Sprintf("%v %s", e.Key, e.Next.UTC().Format(time.DateOnly)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestVersions opens records of each earlier version and of the current one, and finds the same in all. A migration
// without records of the version before it fails the test; with -update, records of the current version are written.
func TestVersions(t *testing.T) {
	t.Parallel()
	_, current, err := store.Version(t.TempDir())
	if err != nil || current < 1 {
		t.Fatal(current, err)
	}
	for version := 1; version <= current; version++ {
		archive, dir := filepath.Join("testdata", "versions", fmt.Sprint(version, ".tar.gz")), filepath.Join(t.TempDir(), "records")
		if _, err := os.Stat(archive); err != nil && version == current && golden.Update() {
			pack(t, archive)
		}
		unpack(t, archive, dir)
		if found, _, err := store.Version(dir); err != nil || found != version {
			t.Fatalf("%s has version %d, %v", archive, found, err)
		}
		golden.Check(t, filepath.Join("testdata", "versions", "records.txt"), readVersion(t, dir))
		if found, _, err := store.Version(dir); err != nil || found != current {
			t.Errorf("after it was opened, %s has version %d, %v", archive, found, err)
		}
	}
}

func pack(t *testing.T, archive string) {
	t.Helper()
	dir := t.TempDir()
	fillVersion(t, dir)
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Write(t.Context(), file, []backup.Source{{Dir: dir}}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := backup.Restore(t.Context(), file, dir, nil); err != nil {
		t.Fatal(err)
	}
}
