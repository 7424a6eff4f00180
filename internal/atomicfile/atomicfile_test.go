package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/atomicfile"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "sub", "f"), filepath.Join(dir, "link")
	if backup, err := atomicfile.Write(path, nil, []byte("one"), &atomicfile.Options{Mode: 0o640, Backup: true}); err != nil || backup != "" {
		t.Fatalf("made: %q, %v", backup, err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{path + ".backup-20261121-120000", path + ".backup-20261121-120000-2"} {
		old := read(t, path)
		backup, err := atomicfile.Write(link, []byte(old), []byte(old+"+"), &atomicfile.Options{Mode: 0o777, Backup: true, Now: noon})
		if err != nil || backup != want || read(t, backup) != old {
			t.Fatalf("%d: %q, %v", n, backup, err)
		}
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 || read(t, path) != "one++" {
		t.Errorf("%v, %v, %q", info.Mode(), err, read(t, path))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := atomicfile.Write(path, []byte("one++"), []byte("x"), &atomicfile.Options{Mode: 0o600, Force: true}); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestFileRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("now"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, old := range [][]byte{nil, {}, []byte("then")} {
		if _, err := atomicfile.Write(path, old, []byte("x"), &atomicfile.Options{Backup: true}); !errors.Is(err, atomicfile.ErrChanged) {
			t.Errorf("%q: %v", old, err)
		}
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := atomicfile.Write(path, []byte("now"), []byte("x"), nil); !errors.Is(err, atomicfile.ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nothing"), dangling); err != nil {
		t.Fatal(err)
	}
	if _, err := atomicfile.Write(dangling, nil, []byte("x"), nil); err == nil {
		t.Error("a link to nothing was replaced")
	}
	if _, err := atomicfile.Write(filepath.Join(dir, "gone"), []byte("then"), []byte("x"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || read(t, path) != "now" {
		t.Errorf("%v, %v, %q", entries, err, read(t, path))
	}
}
