package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// memoryPoll is how often a sandbox's memory is looked at: at 2 GB/s of writing, 40 MB pass between two looks.
const memoryPoll = 20 * time.Millisecond

// watchMemory calls exceeded once when the sandbox uses more than limit bytes,
// and returns then or when ctx ends. gVisor keeps all memory of a sandbox, its
// tmpfs files included, in one memfd of the sentry, whose allocated blocks tell
// the use: this works without any cgroup, and says why a program was stopped.
func watchMemory(ctx context.Context, sentry func() int, limit int64, exceeded func()) {
	tick := time.NewTicker(memoryPoll)
	defer tick.Stop()
	var memfd string
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if memfd == "" {
			memfd = findMemory(sentry())
		}
		if used, err := allocated(memfd); err != nil {
			memfd = ""
		} else if used > limit {
			exceeded()
			return
		}
	}
}

// findMemory returns the path of the sentry's memory file, "" while there is none.
func findMemory(pid int) string {
	if pid == 0 {
		return ""
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, "/memfd:runsc-memory") {
			return path
		}
	}
	return ""
}

func allocated(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("look at the sandbox's memory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("look at the sandbox's memory: no block count of %s", path)
	}
	return stat.Blocks * 512, nil
}
