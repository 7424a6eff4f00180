//go:build unix

package resultschema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/resultschema"
	"sallyport/internal/filelock"
)

// TestTraps: what lies in the folder in place of a file of ours is not read, not waited for and not followed.
func TestTraps(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	f := files(t, dir)
	if err := os.WriteFile(outside, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":   func(path string) error { return os.Symlink(outside, path) },
		"huge":   func(path string) error { return errorOf(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := set(filepath.Join(dir, name+".shapes")); err != nil {
				t.Fatal(err)
			}
			if known, err := f.Load(name); err == nil || known == nil || len(known) > 0 {
				t.Errorf("%v, %v", known, err)
			}
			if _, err := f.Merge(name, resultschema.Entries{digest(1): {Day: 1 << 20}}); err == nil && name == "folder" {
				t.Error("a folder was replaced")
			}
		})
	}
	if data, err := os.ReadFile(outside); string(data) != "keep me" {
		t.Errorf("outside is %q, %v", data, err)
	}
}

func errorOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// TestLockIsNeverGiven: another process that holds the lock for ever holds nobody up, and Close not for long.
func TestLockIsNeverGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f, err := resultschema.OpenFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		unlock, err := filelock.Dir(dir, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		s := resultschema.New(f, nil)
		for i := range 50 {
			s.Learn(fmt.Sprint("up", i), digest(1), text(`{"a":1}`))
		}
		time.Sleep(time.Minute)
		if s.Lookup("up0", digest(1)) == nil {
			t.Error("nothing is learned")
		}
		start := time.Now()
		s.Close()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}
