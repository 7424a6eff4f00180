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

// staleLimit is how long processes of a killed gateway may take to end after SIGKILL.
const staleLimit = 5 * time.Second

// clearHost removes everything that the killed host with directory dir left: processes, cgroups, mounts, files.
// It does not call runsc, which may be what hung. If a mount cannot be removed, the files stay,
// because they may belong to another process. killed is the number of killed processes.
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
	if then := loadCgroups(dir); then.memory != c.memory { // the gateway was in another cgroup
		err = errors.Join(err, then.clear(dir))
	}
	if mountErr := unmountBelow(dir); mountErr != nil {
		return killed, errors.Join(err, mountErr)
	}
	return killed, errors.Join(err, os.RemoveAll(dir))
}

// saveCgroups records where a host has its cgroups, for clearHost.
func saveCgroups(c cgroups, dir string) error {
	data := strings.Join([]string{string(c.mode), c.memory, c.cpu}, "\n")
	if err := os.WriteFile(filepath.Join(dir, "cgroups"), []byte(data), 0o600); err != nil {
		return fmt.Errorf("note cgroups: %w", err)
	}
	return nil
}

// loadCgroups returns the cgroups that saveCgroups recorded, none without a valid record. Only the host's user can write there.
func loadCgroups(dir string) cgroups {
	data, err := os.ReadFile(filepath.Join(dir, "cgroups"))
	lines := strings.Split(string(data), "\n")
	if err != nil || len(lines) != 3 || !filepath.IsAbs(lines[1]) {
		return cgroups{mode: NoCgroup}
	}
	return cgroups{mode: LimitMode(lines[0]), memory: lines[1], cpu: lines[2]}
}

// processesOf returns the runsc processes with state in dir, regardless of their parents.
// The processes that run programs die with them.
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

// unmountBelow unmounts everything below dir, the newest mount first.
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
