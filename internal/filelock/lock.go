//go:build unix

package filelock

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is the lock of [Dir] for frequent use: it keeps the directory open. It does not lock out goroutines of the
// same process: the caller must hold a mutex around it.
type Lock struct{ f *os.File }

// Open opens a directory without locking it. The caller must Close it.
func Open(dir string) (*Lock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Lock{f}, nil
}

// Acquire waits for the lock for at most patience, then returns ErrBusy.
func (l *Lock) Acquire(patience time.Duration) error {
	err := lock(int(l.f.Fd()), patience)
	if err == unix.ENOTSUP || err == unix.ENOLCK { //nolint:errorlint // as the system call returned it
		return nil
	}
	return err
}

// Same reports whether dir is still the directory that was opened.
func (l *Lock) Same(dir string) (bool, error) {
	there, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	opened, err := l.f.Stat()
	return err == nil && os.SameFile(there, opened), err
}

// Release releases the lock.
func (l *Lock) Release() { _ = unix.Flock(int(l.f.Fd()), unix.LOCK_UN) }

// Close releases the lock and closes the directory.
func (l *Lock) Close() error { return l.f.Close() }
