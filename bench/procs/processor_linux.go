package procs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of whatever its children leave behind, so that it learns what those have used.
func Adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// Reap waits for adopted processes that have ended, except for those that other code waits for.
func Reap(but ...int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || slices.Contains(but, pid) {
			continue
		}
		if fields := statOf(file); len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // gone by now is as good
		}
	}
}

// ChildrenTime returns the processor time of all ended children and their descendants, in milliseconds.
func ChildrenTime() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}
