package oauth

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Only who may write to the user's own folders can make links there.
const (
	noFollow = 0
	noWait   = 0
)

// tryLock locks a file until it is closed, unless another process has locked it.
func tryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
