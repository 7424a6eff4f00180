package checksumfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/checksumfile"
)

var notes = checksumfile.Kind{Version: 1, Suffix: ".note", Limit: 1000}

func openFolder(t *testing.T, dir string, kind checksumfile.Kind) *checksumfile.Folder {
	t.Helper()
	f, err := checksumfile.OpenFolder(dir, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t *testing.T, f *checksumfile.Folder, name, body string) {
	t.Helper()
	if err := f.Write(name, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f := openFolder(t, dir, notes)
	write(t, f, "x", "first")
	write(t, f, "x", "second")
	if body, err := openFolder(t, dir, notes).Read("x"); string(body) != "second" || err != nil {
		t.Errorf("read %q, %v", body, err)
	}
	if _, err := f.Read("y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := openFolder(t, dir, checksumfile.Kind{Version: 2, Suffix: ".note", Limit: 1000}).Read("x"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of another version: %v", err)
	}
	if _, err := openFolder(t, dir, checksumfile.Kind{Version: 1, Suffix: ".note", Limit: 10}).Read("x"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is too long: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "x.note")); err != nil || info.Mode() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
}

// TestSweep leaves what is new, what is not of the folder's kind, and what others are just writing.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	f := openFolder(t, dir, notes)
	for age, name := range []string{"new", "day", "days", "many", "old"} {
		write(t, f, name, name)
		setAge(t, dir, name+".note", time.Duration(age*age)*24*time.Hour)
	}
	for _, name := range []string{"other.txt", ".now.tmp", ".left.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	setAge(t, dir, "other.txt", 1000*time.Hour)
	setAge(t, dir, ".left.tmp", 2*time.Hour)
	f.Sweep(4, 8*24*time.Hour)
	if names, err := f.Names(); err != nil || !cmp.Equal(names, []string{"new", "day", "days"}) {
		t.Errorf("names %v, %v", names, err)
	}
	if err := f.Touch("days"); err != nil {
		t.Fatal(err)
	}
	f.Sweep(1, time.Hour)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if want := []string{".now.tmp", "days.note", "other.txt"}; err != nil || !cmp.Equal(bases(left), want) {
		t.Errorf("left %v, %v; want %v", left, err, want)
	}
}

func setAge(t *testing.T, dir, name string, age time.Duration) {
	t.Helper()
	when := time.Now().Add(-age)
	if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
		t.Fatal(err)
	}
}

func bases(paths []string) []string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	return names
}
