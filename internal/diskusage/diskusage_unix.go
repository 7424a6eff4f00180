//go:build unix

package diskusage

import (
	"io/fs"
	"syscall"
)

// measure returns the disk space of a file, and its identity if it has several names.
func measure(info fs.FileInfo) (size int64, id file, linked bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), file{}, false
	}
	id = file{uint64(stat.Dev), uint64(stat.Ino)}                        //nolint:gosec,unconvert // the types differ between systems
	return int64(stat.Blocks) * 512, id, !info.IsDir() && stat.Nlink > 1 //nolint:unconvert // as above
}
