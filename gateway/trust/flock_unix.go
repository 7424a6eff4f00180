//go:build unix

package trust

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockDir keeps other processes out of a directory's lock file until unlock is
// called. It locks the directory itself, so that no file is left behind.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR { //nolint:errorlint // a system call returns the bare number
			break
		}
	}
	if err != nil && err != unix.ENOTSUP && err != unix.ENOLCK { //nolint:errorlint // as above
		_ = f.Close()
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return func() { _ = f.Close() }, nil // closing it unlocks it
}
