package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/testutil/natscluster"
)

// writerDir is the variable that makes the test binary a writer into its directory.
const writerDir = "STORE_WRITER"

func TestMain(m *testing.M) {
	natscluster.Serve()
	if dir := os.Getenv(writerDir); dir != "" {
		if err := write(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if dir := os.Getenv(creatorDir); dir != "" {
		if err := createBuckets(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if dir := os.Getenv(tickerDir); dir != "" {
		if err := tick(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// write appends records and changes a value until it is killed, and says of each write that it is acknowledged.
func write(dir string) error {
	ctx := context.Background()
	s, err := store.Open(dir, nil)
	if err != nil {
		return err
	}
	log, bucket := places(s)
	var last uint64
	if e, err := log.Last(ctx, store.Key{"run"}); err == nil {
		last = e.Revision
	}
	for i := 0; ; i++ {
		value := fmt.Appendf(nil, "%d-%d", os.Getpid(), i)
		if last, err = log.AppendAfter(ctx, store.Key{"run"}, last, value); err != nil {
			return err
		}
		fmt.Printf("log %s\n", value)
		if _, err = bucket.Put(ctx, store.Key{"value"}, value); err != nil {
			return err
		}
		fmt.Printf("put %s\n", value)
		gone := store.Key{"gone", fmt.Sprint(i % 3)}
		if _, err = bucket.Put(ctx, gone, value); err != nil {
			return err
		}
		if err = bucket.Delete(ctx, gone, 0); err != nil {
			return err
		}
		if _, err = log.Append(ctx, gone, value); err != nil {
			return err
		}
		if err = log.Remove(ctx, gone); err != nil {
			return err
		}
		fmt.Printf("del %d\n", i%3)
	}
}

func places(s *store.Store) (*store.Log, *store.Bucket) {
	log, err := s.Log("crash", store.Limits{Records: 100_000})
	bucket, err2 := s.Bucket("crash", store.Limits{})
	if err := errors.Join(err, err2); err != nil {
		panic(err)
	}
	return log, bucket
}

// TestKilled: a process that writes is killed at any moment, again and again; whatever it had been told was written
// is there afterwards, in order, what it deleted is not, and the directory is free for the next one.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var logged []string
	value, deletions := "", 0
	for range 12 {
		deleted := ""
		for _, line := range killedWriter(t, writerDir, dir, rand.IntN(120), time.Duration(rand.IntN(3000))*time.Microsecond) {
			verb, what, _ := strings.Cut(line, " ")
			switch verb {
			case "log":
				logged = append(logged, what)
			case "put":
				value = what
			case "del":
				deleted = what
				deletions++
			}
		}
		s, err := store.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkKept(t, s, logged, value)
		if log, bucket := places(s); deleted != "" { // the writer was at another key by then
			if _, err := log.Last(t.Context(), store.Key{"gone", deleted}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s was removed, and is there: %v", deleted, err)
			}
			if _, err := bucket.Get(t.Context(), store.Key{"gone", deleted}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s was deleted, and is there: %v", deleted, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(logged) == 0 || deletions == 0 {
		t.Errorf("%d records and %d deletions were acknowledged: the writer wrote nothing", len(logged), deletions)
	}
}

// killedWriter returns what a writer acknowledged until it was killed, which is a while after so many lines.
func killedWriter(t *testing.T, variable, dir string, lines int, while time.Duration) (acknowledged []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(out); in.Scan(); {
		acknowledged = append(acknowledged, in.Text())
		if len(acknowledged) == lines+1 {
			time.AfterFunc(while, func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return acknowledged
}

// checkKept: all that was acknowledged is there, in its order; what was written and not acknowledged may be.
func checkKept(t *testing.T, s *store.Store, logged []string, value string) {
	t.Helper()
	log, bucket := places(s)
	var found []string
	for e, err := range log.Read(t.Context(), store.Key{"run"}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, string(e.Value))
	}
	at := 0
	for _, value := range found {
		if at < len(logged) && value == logged[at] {
			at++
		}
	}
	if at != len(logged) {
		t.Fatalf("%d of %d acknowledged records are there in order; the first that is not: %s", at, len(logged), logged[at])
	}
	if e, err := bucket.Get(t.Context(), store.Key{"value"}); value != "" && (err != nil || before(string(e.Value), value)) {
		t.Errorf("the value is %q, and %q was acknowledged: %v", e.Value, value, err)
	}
}

// before reports whether a value was written before one of the same writer.
func before(value, acknowledged string) bool {
	var writer, n, writer2, n2 int
	if _, err := fmt.Sscanf(value+" "+acknowledged, "%d-%d %d-%d", &writer, &n, &writer2, &n2); err != nil {
		return true
	}
	return writer == writer2 && n < n2
}

// TestTornWrite: a file that ends in the middle of a record costs what was cut off and nothing before it.
func TestTornWrite(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	s := open(t, whole)
	log, _ := places(s)
	for i := range 20 {
		if _, err := log.Append(t.Context(), store.Key{"run"}, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	// As a crash leaves it: without what a proper end writes.
	for _, cut := range []int64{1, 7, 30, 200} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		truncate(t, dir, cut)
		s := open(t, dir)
		log, _ := places(s)
		found := 0
		for e, err := range log.Read(t.Context(), store.Key{"run"}, 0) {
			if err != nil || string(e.Value) != fmt.Sprint(found) {
				t.Fatalf("cut by %d: record %d is %q, %v", cut, found, e.Value, err)
			}
			found++
		}
		if found >= 20 || found < 20-1-int(cut)/20 {
			t.Errorf("cut by %d bytes: %d of 20 records are left", cut, found)
		}
		if _, err := log.Append(t.Context(), store.Key{"run"}, []byte("next")); err != nil {
			t.Errorf("cut by %d: %v", cut, err)
		}
	}
}

// truncate cuts the block of the log at its end.
func truncate(t *testing.T, dir string, by int64) {
	t.Helper()
	cut := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, "log_crash") || filepath.Ext(path) != ".blk" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		cut++
		return os.Truncate(path, max(0, info.Size()-by))
	})
	if err != nil || cut != 1 {
		t.Fatalf("%d blocks, %v", cut, err)
	}
}

// TestLost: what was there and is gone is said to be gone, not begun anew.
func TestLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	log, _ := places(s)
	if _, err := log.Append(t.Context(), store.Key{"run"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lost, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "*", "streams", "log_crash"))
	if err != nil || len(lost) != 1 {
		t.Fatal(lost, err)
	}
	if err := os.RemoveAll(lost[0]); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	again, bucket := places(s)
	if _, err := again.Append(t.Context(), store.Key{"run"}, nil); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("error %v, want %v", err, store.ErrCorrupt)
	}
	if _, err := bucket.Put(t.Context(), store.Key{"k"}, nil); err != nil {
		t.Errorf("another place: %v", err)
	}
}
