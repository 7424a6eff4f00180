//go:build linux

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// staleLimit is how long what a killed gateway left may take to end once it is killed.
const staleLimit = 5 * time.Second

// clearHost ends and removes all that a killed host left that lived in dir: processes, cgroups, mounts, files.
// It asks nothing of runsc, which may be what hung. Where a mount stays, so do the files, for
// they may belong to another process.
func clearHost(c cgroups, dir string) (killed int, err error) {
	for end := time.Now().Add(staleLimit); ; time.Sleep(5 * time.Millisecond) {
		left := processesOf(dir)
		if len(left) == 0 || time.Now().After(end) {
			break
		}
		killed = max(killed, len(left))
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	err = c.clear(dir)
	if then := notedCgroups(dir); then.memory != c.memory { // the gateway was in another cgroup
		err = errors.Join(err, then.clear(dir))
	}
	if mountErr := unmountBelow(dir); mountErr != nil {
		return killed, errors.Join(err, mountErr)
	}
	return killed, errors.Join(err, os.RemoveAll(dir))
}

// noteCgroups writes down where a host has its cgroups, for the one that clears it away.
func noteCgroups(c cgroups, dir string) error {
	data := strings.Join([]string{string(c.way), c.memory, c.cpu}, "\n")
	if err := os.WriteFile(filepath.Join(dir, "cgroups"), []byte(data), 0o600); err != nil {
		return fmt.Errorf("note cgroups: %w", err)
	}
	return nil
}

// notedCgroups returns what was written down, none if nothing was. Only the user of the host can write there.
func notedCgroups(dir string) cgroups {
	data, err := os.ReadFile(filepath.Join(dir, "cgroups"))
	lines := strings.Split(string(data), "\n")
	if err != nil || len(lines) != 3 || !filepath.IsAbs(lines[1]) {
		return cgroups{way: Watching}
	}
	return cgroups{way: Limiting(lines[0]), memory: lines[1], cpu: lines[2]}
}

// processesOf returns the processes of runsc that keep their state in dir, whatever their parents
// are. What they run programs in dies with them.
func processesOf(dir string) []int {
	own := []byte("\x00--root=" + filepath.Join(dir, "runsc") + "\x00")
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var found []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if pid, numErr := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && numErr == nil && bytes.Contains(data, own) {
			found = append(found, pid)
		}
	}
	return found
}

// unmountBelow unmounts what is mounted below dir, the last first.
func unmountBelow(dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	var errs []error
	for _, line := range slices.Backward(strings.Split(string(data), "\n")) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasPrefix(fields[4], dir+"/") {
			continue
		}
		if err := unix.Unmount(fields[4], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", fields[4], err))
		}
	}
	return errors.Join(errs...)
}
