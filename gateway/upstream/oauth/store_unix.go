//go:build unix

package oauth

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Flags to open files: do not follow links, do not block on pipes.
const (
	noFollow = unix.O_NOFOLLOW
	noWait   = unix.O_NONBLOCK
)

// tryLock locks a file until it is closed, unless another process has locked it.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}
