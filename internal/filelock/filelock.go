//go:build unix

// Package filelock keeps processes from changing the same files at the same time.
package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Dir keeps others who call it, in this process or another, waiting until unlock
// is called. It locks the directory itself, so that no file is left behind; where
// the file system has no locks it does nothing.
func Dir(dir string) (unlock func(), err error) {
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
