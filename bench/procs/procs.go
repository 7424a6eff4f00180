// Package procs looks at processes, as far as benchmarks need it: which belong together, and the processor time that they
// have used.
package procs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/sleep"
)

// Process is one of the host's.
type Process struct {
	PID, Parent int
	// Name is its argv[0], which tells gVisor's parts apart.
	Name string
	// ours says that its command line names the folder that was asked for.
	ours bool
	// ticks of processor time, 10 ms each: its own, and those of its children that have ended.
	ticks, children uint64
}

// Of returns the processes with a folder in their command line, and those that descend from them or from root.
func Of(root int, folder string) map[int]Process {
	all := map[int]Process{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		if p, ok := read(file, folder); ok {
			all[p.PID] = p
		}
	}
	found := map[int]Process{}
	for pid, p := range all {
		for up, ok := p, true; ok; up, ok = all[up.Parent] {
			if up.ours || up.PID == root {
				found[pid] = p
				break
			}
		}
	}
	return found
}

// read reads one process; it may be gone by then.
func read(stat, folder string) (Process, bool) {
	fields := statOf(stat)
	cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
	if err != nil || len(fields) < 15 || fields[0] == "Z" {
		return Process{}, false
	}
	name, _, _ := strings.Cut(string(cmdline), "\x00")
	if name == "" {
		name = "program" // gVisor's stubs, which hold the address spaces of the sandbox's processes, have no name
	}
	p := Process{Name: filepath.Base(name), ours: strings.Contains(string(cmdline), folder+"/")}
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(fields[i], 10, 64)
		return n
	}
	p.Parent, _ = strconv.Atoi(fields[1])
	p.PID, err = strconv.Atoi(filepath.Base(filepath.Dir(stat)))
	p.ticks, p.children = number(11)+number(12), number(13)+number(14)
	return p, err == nil
}

// statOf is what stands in a file stat of /proc behind the name: state, parent and so on. There is nothing when the process is gone.
func statOf(file string) []string {
	data, _ := os.ReadFile(file)
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// Sandboxes counts sandboxes.
func Sandboxes(all map[int]Process) (count int) {
	for _, p := range all {
		if p.Name == "runsc-sandbox" {
			count++
		}
	}
	return count
}

// Busy is the processor time between two looks, in ticks. A process that came or went counts as much.
func Busy(before, now map[int]Process) (ticks uint64) {
	for pid, p := range now {
		if was, ok := before[pid]; ok {
			ticks += p.ticks - was.ticks
		} else {
			ticks += 100
		}
	}
	for pid := range before {
		if _, ok := now[pid]; !ok {
			ticks += 100
		}
	}
	return ticks
}

const (
	// lookEvery is how long processes must be idle to be quiet, idleTicks the processor time that counts
	// as idle.
	lookEvery    = 120 * time.Millisecond
	idleTicks    = 1
	quietTimeout = time.Minute
)

// WaitQuiet waits until the processes that look returns are idle and at least waiting of them are sandboxes: no process started
// or ended, and none used processor time.
func WaitQuiet(ctx context.Context, look func() map[int]Process, waiting int) error {
	before := look()
	for end := time.Now().Add(quietTimeout); ; {
		if err := sleep.For(ctx, lookEvery); err != nil {
			return err
		}
		now := look()
		if Sandboxes(now) >= waiting && Busy(before, now) <= idleTicks {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the processes do not come to rest: %d sandboxes wait, want %d; %d ticks in %v", Sandboxes(now), waiting, Busy(before, now), lookEvery)
		}
		before = now
	}
}

// tick is the unit of processor times in /proc, in milliseconds.
const tick = 10

// Used is the processor time that a process and its ended children have used, in milliseconds.
func (p Process) Used() float64 { return float64(p.ticks+p.children) * tick }

// Used is the processor time of processes, in milliseconds.
func Used(all map[int]Process) (sum float64) {
	for _, p := range all {
		sum += p.Used()
	}
	return sum
}
