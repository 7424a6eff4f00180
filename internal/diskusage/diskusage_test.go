//go:build unix

package diskusage_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/diskusage"
)

func TestTree(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	measure := func() int64 {
		t.Helper()
		size, err := diskusage.Tree(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return size
	}
	empty := measure()
	if err := os.WriteFile(filepath.Join(inside, "file"), bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	full := measure()
	if got := full - empty; got < 1<<20 || got > 1<<20+64<<10 {
		t.Errorf("a file of 1 MiB takes %d bytes", got)
	}
	if err := os.Link(filepath.Join(inside, "file"), filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	if got := measure(); got-full > 64<<10 {
		t.Errorf("its second name takes %d bytes", got-full)
	}
	if size, err := diskusage.Tree(t.Context(), filepath.Join(dir, "none")); size != 0 || err != nil {
		t.Errorf("what is not there: %d, %v", size, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := diskusage.Tree(ended, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
