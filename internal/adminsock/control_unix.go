//go:build unix

package adminsock

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file belongs to this user.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// refused reports whether the socket has no listener any more.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
