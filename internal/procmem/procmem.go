//go:build linux

// Package procmem measures the memory of processes, from /proc. Its function is [Of].
package procmem

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Use is the memory of processes, in bytes.
type Use struct {
	// Resident (RSS) counts all pages, Proportional (PSS) the share of each page, Unique (USS) the pages of one process only.
	Resident, Proportional, Unique int64
}

// Of returns the memory of processes together. Processes that share one address space count once: gVisor has several for each
// program, and /proc shows the whole address space for each of them.
func Of(pids ...int) (sum Use, err error) {
	var counted []int
	for _, pid := range pids {
		if slices.ContainsFunc(counted, func(other int) bool { return sameAddressSpace(pid, other) }) {
			continue
		}
		one, err := read(pid)
		if err != nil {
			return Use{}, err
		}
		counted = append(counted, pid)
		sum.Resident, sum.Proportional, sum.Unique = sum.Resident+one.Resident, sum.Proportional+one.Proportional, sum.Unique+one.Unique
	}
	return sum, nil
}

// compareAddressSpaces is KCMP_VM of linux/kcmp.h.
const compareAddressSpaces = 1

// sameAddressSpace reports whether two processes were made with CLONE_VM. It is false if the kernel does not tell.
func sameAddressSpace(a, b int) bool {
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), compareAddressSpaces, 0, 0, 0)
	return errno == 0 && order == 0
}

// read reads what one process uses.
func read(pid int) (u Use, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			continue // the heading
		}
		switch name {
		case "Rss":
			u.Resident += kilobytes << 10
		case "Pss":
			u.Proportional += kilobytes << 10
		case "Private_Clean", "Private_Dirty":
			u.Unique += kilobytes << 10
		}
	}
	return u, nil
}
