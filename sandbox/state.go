package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// stateDir returns the directory that hosts keep their state in, made and
// checked: private to this user, and short enough for a socket's path.
func stateDir(explicit string) (string, error) {
	dir := explicit
	if dir == "" {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("sallyport-%d", os.Geteuid()))
		if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" {
			dir = filepath.Join(run, "sallyport")
		}
	}
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

// checkPrivate refuses a directory that somebody else made or may write to.
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

// cgroup names the cgroup of one sandbox, relative to our own.
func (h *Host) cgroup(id string) string {
	return "sallyport-" + filepath.Base(h.dir) + "-" + id
}

// cgroupsWritable reports whether cgroups with a memory limit can be made below our own.
func cgroupsWritable() bool {
	dir, file := ownCgroup()
	if dir == "" {
		return false
	}
	probe, err := os.MkdirTemp(dir, "sallyport-probe-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(probe) }()
	_, err = os.Stat(filepath.Join(probe, file))
	return err == nil
}

// ownCgroup returns the directory of our cgroup that limits memory, and the
// name of the file that does: cgroup v1 with its memory controller, or v2.
func ownCgroup() (dir, file string) {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return "", ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[1] == "memory":
			return filepath.Join("/sys/fs/cgroup/memory", parts[2]), "memory.limit_in_bytes"
		case parts[0] == "0" && parts[1] == "":
			dir, file = filepath.Join("/sys/fs/cgroup", parts[2]), "memory.max"
		}
	}
	return dir, file
}

func isNotEmpty(err error) bool { return errors.Is(err, syscall.ENOTEMPTY) }
