//go:build unix

package watch

import (
	"io/fs"
	"syscall"
)

// inode returns the file's inode number, 0 if there is none.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
