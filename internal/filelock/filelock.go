//go:build unix

// Package filelock keeps processes from changing the same files at the same time.
package filelock

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy says that someone held the lock for all the time that was waited.
var ErrBusy = errors.New("another process holds the lock")

// Dir keeps others who call it, in this process or another, waiting until unlock
// is called. It locks the directory itself, so that no file is left behind; where
// the file system has no locks it does nothing. Of a process that hangs with the
// lock the error is ErrBusy, after patience.
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
	return func() { _ = f.Close() }, nil // closing it unlocks it
}

// lock asks again and again: a wait in the kernel could not be ended.
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

// File takes the lock of an open file until that is closed, or says ErrBusy at once where someone else has it, in this
// process or another. Where the file system has no locks it does nothing.
func File(f *os.File) error {
	if err := lock(int(f.Fd()), 0); err != unix.ENOTSUP && err != unix.ENOLCK { //nolint:errorlint // as above
		return err
	}
	return nil
}

// Unlock gives the lock of a file back before that is closed: a process that is just being started has its descriptor too, for a moment.
func Unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
