//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sallyport/sandbox/runsc"
)

const (
	// memoryPoll is the interval of memory checks: at 2 GB/s, a program writes 40 MB between two checks.
	memoryPoll = 20 * time.Millisecond
	// cpuPoll is the interval of CPU time checks, which cost more without a cgroup.
	cpuPoll = 5 * memoryPoll
	// sentryAllowance is how much of gVisor's own memory does not count as the program's. A million
	// files, pipes or sockets take little memory in the sandbox, but much in gVisor's kernel.
	sentryAllowance = 96 << 20
	// clockTick is the unit of times in /proc on every Linux that Go runs on.
	clockTick = time.Second / 100
)

// watchLimits holds the limits of one program and how to measure its use.
type watchLimits struct {
	// sentry returns the process ID of gVisor's kernel, 0 while it is unknown.
	sentry func() int
	// cgroup is the sandbox's, nil if it has none.
	cgroup *cgroup
	// gauge is the sandbox's.
	gauge *memoryGauge
	// memory is in bytes, of all that the sandbox uses.
	memory int64
	// cpu is CPU time from now on, 0 without limit. It does not include the time that an idle sandbox has used.
	cpu time.Duration
	// window is the time after which cpu counts from zero again, 0 for never.
	window time.Duration
}

// watch calls exceeded once when the sandbox exceeds a limit, and then returns. It also returns when ctx ends. The result is
// the CPU time in between; without a cgroup, it lacks the last 0.1 s of a process that ended by itself.
func watch(ctx context.Context, w watchLimits, exceeded func(Status)) time.Duration {
	tick := time.NewTicker(memoryPoll)
	defer tick.Stop()
	clock := cpuGauge{cgroup: w.cgroup}
	before, since := clock.read(w.sentry()), time.Now()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return clock.read(w.sentry()) - before
		case <-tick.C:
		}
		if w.gauge.read(w.sentry()) > w.memory || w.cgroup.outOfMemory() {
			exceeded(OutOfMemory)
			return clock.read(w.sentry()) - before
		}
		if w.window > 0 && time.Since(since) > w.window {
			before, since = clock.read(w.sentry()), time.Now()
		}
		if w.cpu > 0 && n%int(cpuPoll/memoryPoll) == 0 && clock.read(w.sentry())-before > w.cpu {
			exceeded(OutOfCPU)
			return clock.read(w.sentry()) - before
		}
	}
}

// memoryGauge measures the memory of a sandbox. gVisor keeps all memory of a sandbox,
// including tmpfs files, in one memfd of the sentry; its allocated blocks are the use.
// This works without a cgroup, and identifies memory as the reason for a stop. It is safe for
// concurrent use. All programs of a sandbox share one: the search for the file takes longer than
// a small program.
type memoryGauge struct{ memfd atomic.Pointer[string] }

// read returns the bytes in use, 0 if they cannot be read.
func (m *memoryGauge) read(sentry int) int64 {
	memfd := m.memfd.Load()
	if memfd == nil {
		found := findMemory(sentry)
		memfd = &found
		m.memfd.Store(memfd)
	}
	used, err := allocatedBytes(*memfd)
	if err != nil {
		m.memfd.Store(nil)
		return 0
	}
	return used + max(0, anonymousMemory(sentry)-sentryAllowance)
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

func allocatedBytes(path string) (int64, error) {
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

// anonymousMemory returns the anonymous memory of a process in bytes: for the sentry, that of its kernel's own data.
func anonymousMemory(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data)) // size, resident, shared: pages
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	shared, _ := strconv.ParseInt(fields[2], 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}

// cpuGauge reads processor time: of a cgroup, or else of the sentry and the
// processes that it runs programs in, its children.
type cpuGauge struct {
	cgroup  *cgroup
	highest time.Duration
}

// read returns the CPU time so far. It never decreases, even if processes end in between.
func (c *cpuGauge) read(sentry int) time.Duration {
	used, ok := c.cgroup.cpuTime()
	if !ok {
		used = treeTime(sentry)
	}
	c.highest = max(c.highest, used)
	return c.highest
}

// treeTime adds up the CPU time of a process and its descendants, including ended ones.
func treeTime(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	total := readStat(pid).used
	for _, child := range runsc.Children(pid) {
		total += treeTime(child)
	}
	return total
}

// processStat holds the used fields of /proc/PID/stat.
type processStat struct {
	parent int
	// used is processor time, that of ended children included.
	used time.Duration
}

func readStat(pid int) processStat {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}
	}
	// The name, in parentheses, may hold anything; what follows is state, parent, ...
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 15 {
		return processStat{}
	}
	var stat processStat
	stat.parent, _ = strconv.Atoi(fields[1])
	for _, field := range fields[11:15] { // user, system, and both of children that were waited for
		ticks, _ := strconv.ParseInt(field, 10, 64)
		stat.used += time.Duration(ticks) * clockTick
	}
	return stat
}
