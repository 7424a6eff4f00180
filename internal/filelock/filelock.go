//go:build unix

// Package filelock keeps processes from changing the same files at the same time.
package filelock

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy means that another process held the lock for the whole wait.
var ErrBusy = errors.New("another process holds the lock")

// Dir locks a directory against other callers, in this process or another, until unlock is called. It locks the
// directory itself, so that no lock file is left behind; it does nothing on a file system without locks. It returns
// ErrBusy if the lock is not free within patience.
func Dir(dir string, patience time.Duration) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = lock(int(f.Fd()), patience)
	if err != nil && err != unix.ENOTSUP && err != unix.ENOLCK { //nolint:errorlint // as above
		_ = f.Close()
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return func() {
		Unlock(f)
		_ = f.Close()
	}, nil
}

// lock polls: a blocking wait in the kernel could not be cancelled.
func lock(fd int, patience time.Duration) error {
	end := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR && err != unix.EWOULDBLOCK {
			return err
		}
		if time.Now().After(end) {
			return ErrBusy
		}
		time.Sleep(pause)
	}
}

// File locks an open file until it is closed, or returns ErrBusy at once if it is locked, by this process or another.
// It does nothing on a file system without locks.
func File(f *os.File) error {
	if err := lock(int(f.Fd()), 0); err != unix.ENOTSUP && err != unix.ENOLCK { //nolint:errorlint // as above
		return err
	}
	return nil
}

// Unlock releases the lock of a file before the file is closed: a child process that is being started briefly holds
// the descriptor too.
func Unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
