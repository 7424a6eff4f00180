//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// stateDir creates and returns the directory for the state of hosts: private to this
// user, and short enough for socket paths. If explicit is "", it is the first default
// location that is suitable.
func stateDir(explicit string) (string, error) {
	if explicit != "" {
		return makeStateDir(explicit)
	}
	own := fmt.Sprintf("sallyport-%d", os.Geteuid())
	places := []string{filepath.Join(os.TempDir(), own), filepath.Join("/tmp", own)}
	if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" {
		places = append([]string{filepath.Join(run, "sallyport")}, places...)
	}
	var errs []error
	for _, place := range places {
		dir, err := makeStateDir(place)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

func makeStateDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find state directory: %w", err)
	}
	if len(dir) > 50 { // a socket path has at most 107 bytes, of which up to 57 are below dir
		return "", fmt.Errorf("state directory %s: the path is too long for sockets (50 bytes at most)", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make state directory: %w", err)
	}
	return dir, checkPrivate(dir)
}

// checkPrivate returns an error if another user owns dir or may write to it.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check state directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("state directory %s: it must be a directory owned by this user and not writable by others", dir)
	}
	return nil
}

// lockDir takes the lock of dir, which is held as long as the owning process lives.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	return f, nil
}

// withDirLock runs f with an exclusive lock on parent, so that no other process creates,
// inspects or removes a host's directory at the same time. The lock is held briefly.
func withDirLock(parent string, f func() error) error {
	dir, err := os.Open(parent)
	if err != nil {
		return fmt.Errorf("lock state directory: %w", err)
	}
	defer func() { _ = dir.Close() }()
	for {
		err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock state directory: %w", err)
	}
	return f()
}

func isNotEmpty(err error) bool { return errors.Is(err, syscall.ENOTEMPTY) }
