//go:build unix

package audit

import (
	"io/fs"
	"syscall"
)

// removed reports whether an open file was removed.
func removed(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
