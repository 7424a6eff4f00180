package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// version includes the ctime, which cannot be set.
func version(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%x.%x.%x.%x", s.Ctim.Sec, s.Ctim.Nsec, s.Ino, s.Size)
	}
	return fmt.Sprintf("%x.%x", info.ModTime().UnixNano(), info.Size())
}

// syncAll syncs the file system of f.
func syncAll(f *os.File) error { return unix.Syncfs(int(f.Fd())) }
