package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory returns the resident memory of a process, in bytes, and its number of open files. Linux only.
func Memory(pid int) (resident int64, files int, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0, 0, err
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(after, &resident); err != nil {
		return 0, 0, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	return resident << 10, len(open), err
}
