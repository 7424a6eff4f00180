//go:build linux

package filelock_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sallyport/internal/filelock"
)

// TestDirWithInheritedDescriptor unlocks a directory while a copy of the descriptor is open, as in a child process
// between fork and exec.
func TestDirWithInheritedDescriptor(t *testing.T) {
	dir := t.TempDir()
	unlock, err := filelock.Dir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != dir {
			continue
		}
		var fd int
		for _, c := range filepath.Base(link) {
			fd = fd*10 + int(c-'0')
		}
		copied, err := syscall.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Close(copied) }()
	}
	unlock()
	again, err := filelock.Dir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
