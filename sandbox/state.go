//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// stateDir returns the directory that hosts keep their state in, made and
// checked: private to this user, and short enough for a socket's path. Unless
// it was asked for by name, it is the first of the usual places that will do.
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
	if len(dir) > 50 { // a socket's path has room for 107 bytes, and ours adds up to 57
		return "", fmt.Errorf("state directory %s: the path is too long for sockets (50 bytes at most)", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make state directory: %w", err)
	}
	return dir, checkPrivate(dir)
}

// checkPrivate refuses a directory that another user owns or may write to.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check state directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("state directory %s: it must be a directory of this user's that nobody else may write to", dir)
	}
	return nil
}

// lockDir takes the lock that lives as long as the process that owns dir.
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

// exclusively runs f while no other process that does the same below parent
// makes, looks at or removes a host's directory. It takes a moment at most.
func exclusively(parent string, f func() error) error {
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
