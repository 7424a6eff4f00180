// Package atomicfile atomically replaces the content of a user's file: it keeps the
// file's mode, follows symbolic links, and can write a backup next to the file.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

var (
	// ErrReadOnly reports that the file has no write permission.
	ErrReadOnly = errors.New("is read-only")
	// ErrChanged reports that the file has changed since it was read.
	ErrChanged = errors.New("was changed by someone else in the meantime; try again")
)

// Options of [Write]; nil is the zero value.
type Options struct {
	// Mode is the mode of a new file; 0 is 0644.
	Mode fs.FileMode
	// Force sets Mode also for an existing file.
	Force bool
	// Backup writes the old content to a new file next to it.
	Backup bool
	// Now is the time in the backup's name; zero is the present.
	Now time.Time
}

// Write replaces the content of path with data. The file must still contain old; a nil
// old means that it does not exist, and then its directory is created too. It returns
// the path of the backup, "" if there is none.
func Write(path string, old, data []byte, opts *Options) (backup string, err error) {
	if opts == nil {
		opts = &Options{}
	}
	path, mode, err := checkTarget(path, old, opts)
	if err != nil {
		return "", err
	}
	if opts.Backup && old != nil {
		if backup, err = writeBackup(path, old, mode, opts.Now); err != nil {
			return "", err
		}
	}
	return backup, Replace(path, data, mode)
}

// checkTarget follows links and checks that the file may be replaced. It returns the real path and the mode to write.
func checkTarget(path string, old []byte, opts *Options) (string, fs.FileMode, error) {
	mode := opts.Mode
	if mode == 0 {
		mode = 0o644
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && old == nil {
		if _, err := os.Lstat(path); err == nil {
			return "", 0, fmt.Errorf("write %s: is a dangling link", path)
		}
		return path, mode, os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err != nil {
		return "", 0, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", 0, err
	}
	switch now, err := os.ReadFile(real); {
	case err != nil:
		return "", 0, err
	case old == nil || !bytes.Equal(now, old):
		return "", 0, fmt.Errorf("write %s: %w", path, ErrChanged)
	case info.Mode()&0o222 == 0:
		return "", 0, fmt.Errorf("write %s: %w", path, ErrReadOnly)
	}
	if !opts.Force {
		mode = info.Mode().Perm()
	}
	f, err := os.OpenFile(real, os.O_WRONLY, 0) // check permission, which a rename does not need
	if err != nil {
		return "", 0, err
	}
	return real, mode, f.Close()
}

// writeBackup writes the backup under an unused name, which it returns.
func writeBackup(path string, data []byte, mode fs.FileMode, now time.Time) (string, error) {
	if now.IsZero() {
		now = time.Now()
	}
	stem := path + ".backup-" + now.Format("20060102-150405")
	for n := 1; ; n++ {
		name := stem
		if n > 1 {
			name = fmt.Sprintf("%s-%d", stem, n)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return name, errors.Join(err, f.Sync(), f.Close())
	}
}

// Replace atomically replaces the file at path with one of that content and mode: a
// reader gets the old or the new content, also after a crash. When Replace
// returns, the content is on the disk. A killed process leaves a file ".NAME.*.tmp" next to it.
func Replace(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err == nil {
		syncDir(filepath.Dir(path))
	}
	return err
}

// syncDir syncs a directory's entries, if the system can: Windows and some file systems cannot.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
