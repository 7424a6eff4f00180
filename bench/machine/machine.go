// Package machine says where and with what was measured, for the heads of results.
package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// CPU is the processor's name, empty where the system does not say it, as with all that follow.
func CPU() string { return field("/proc/cpuinfo", "model name") }

// Memory is how much there is, with its unit.
func Memory() string { return field("/proc/meminfo", "MemTotal") }

// Kernel is Linux' release.
func Kernel() string { return firstLine("/proc/sys/kernel/osrelease") }

// Load is the kernel's line about it, which begins with the mean of a minute.
func Load() string { return firstLine("/proc/loadavg") }

// MeanLoad is the first figure of [Load], the mean of a minute.
func MeanLoad(load string) string {
	mean, _, _ := strings.Cut(load, " ")
	return mean
}

// CheckLoad reports whether to measure on a machine that is busy, by its [Load] and its number of processors; an unknown load is
// not judged. If it is busy and that is not allowed, it returns an error.
func CheckLoad(load string, cores int, allowed bool) (busy bool, err error) {
	mean, err := strconv.ParseFloat(MeanLoad(load), 64)
	if err != nil || mean <= float64(cores) {
		return false, nil //nolint:nilerr // the load is unknown
	}
	if !allowed {
		return false, fmt.Errorf("measure on a quiet machine: its load was %.1f in the last minute, more than its %d processors: wait, or use -busy, which the results then say", mean, cores)
	}
	return true, nil
}

// BusyNote returns what the results say of a busy machine, "" of a quiet one.
func BusyNote(busy bool) string {
	if !busy {
		return ""
	}
	return " (-busy: others used the processors)"
}

// Commit is the commit of the folder's checkout, with "-dirty" where something else lies there; empty without one.
func Commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Version is the first line that a program says of its version.
func Version(ctx context.Context, program, flag string) (string, error) {
	out, err := exec.CommandContext(ctx, program, flag).Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", program, err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return strings.Join(strings.Fields(line), " "), nil
}

// Digest is the SHA-256 of a file, in hexadecimal digits.
func Digest(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

func firstLine(path string) string {
	data, _ := os.ReadFile(path) // where it is missing, nothing is said
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// field returns what stands behind "name:" in a file of /proc.
func field(path, name string) string {
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
