//go:build unix

package watch

import (
	"io/fs"
	"syscall"
)

// inode is the number of the file, 0 where there is none.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
