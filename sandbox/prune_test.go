//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/workspace"
)

// TestOldOutputGoes: new output makes room for itself, the oldest goes first, and a program's own files stay.
func TestOldOutputGoes(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	w, err := workspace.Open(dir, workspace.Options{})
	must(t, err)
	defer func() { _ = w.Close() }()
	must(t, os.Mkdir(filepath.Join(dir, ".out"), 0o700))
	day := 24 * time.Hour
	for name, age := range map[string]time.Duration{"e-1.stdout.txt": 8 * day, "e-2.stdout.txt": 3 * day, "e-3.stderr.txt": 2 * day, "e-4.stdout.txt": day, "mine.txt": 30 * day, "e-5.stdout.txt.bak": 30 * day} {
		path := filepath.Join(dir, ".out", name)
		must(t, os.WriteFile(path, make([]byte, 1000), 0o600))
		must(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	fresh := newOutputBuffer(10, 5000, func() {})
	fresh.spillTo(t.TempDir(), 1<<20)
	defer fresh.spill.close()
	must(t, pruneOutput(w, 12_000, now, fresh))
	if got := fmt.Sprint(names(t, filepath.Join(dir, ".out"))); got != "e-1.stdout.txt e-2.stdout.txt e-3.stderr.txt e-4.stdout.txt e-5.stdout.txt.bak mine.txt" {
		t.Errorf("nothing was to be kept: %s", got)
	}
	_, _ = fresh.Write(make([]byte, 900)) // 3000 are for output: two more of 1000
	must(t, pruneOutput(w, 12_000, now, fresh, newOutputBuffer(10, 10, func() {})))
	if got := fmt.Sprint(names(t, filepath.Join(dir, ".out"))); got != "e-3.stderr.txt e-4.stdout.txt e-5.stdout.txt.bak mine.txt" {
		t.Errorf("left: %s", got)
	}
	must(t, pruneOutput(w, 100, now, fresh))
	if got := fmt.Sprint(names(t, filepath.Join(dir, ".out"))); got != "e-5.stdout.txt.bak mine.txt" {
		t.Errorf("left without room: %s", got)
	}
}
