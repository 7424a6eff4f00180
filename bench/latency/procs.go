package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sallyport/internal/sleep"
	"strconv"
	"strings"
	"time"
)

// process is one of the host's.
type process struct {
	pid, parent int
	// name is its argv[0], which tells gVisor's parts apart.
	name string
	// ours says that its command line names the folder that was asked for.
	ours bool
	// ticks of processor time, 10 ms each: its own, and those of its children that have ended.
	ticks, children uint64
}

// processesOf returns the processes with a folder in their command line, and those that descend from them or from root.
func processesOf(root int, folder string) map[int]process {
	all := map[int]process{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		if p, ok := look(file, folder); ok {
			all[p.pid] = p
		}
	}
	found := map[int]process{}
	for pid, p := range all {
		for up, ok := p, true; ok; up, ok = all[up.parent] {
			if up.ours || up.pid == root {
				found[pid] = p
				break
			}
		}
	}
	return found
}

// look reads one process; it may be gone by then.
func look(stat, folder string) (process, bool) {
	fields := statOf(stat)
	cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
	if err != nil || len(fields) < 15 || fields[0] == "Z" {
		return process{}, false
	}
	name, _, _ := strings.Cut(string(cmdline), "\x00")
	if name == "" {
		name = "program" // gVisor's stubs, which hold the address spaces of the sandbox's processes, have no name
	}
	p := process{name: filepath.Base(name), ours: strings.Contains(string(cmdline), folder+"/")}
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(fields[i], 10, 64)
		return n
	}
	p.parent, _ = strconv.Atoi(fields[1])
	p.pid, err = strconv.Atoi(filepath.Base(filepath.Dir(stat)))
	p.ticks, p.children = number(11)+number(12), number(13)+number(14)
	return p, err == nil
}

// statOf is what stands in a file stat of /proc behind the name: state, parent and so on. There is nothing when the process is gone.
func statOf(file string) []string {
	data, _ := os.ReadFile(file)
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// usedTime is the processor time, in milliseconds, of serve and all that it started so far, with every child of this process that has ended.
func (g *instance) usedTime() float64 {
	ticks := uint64(0)
	for _, p := range g.processes() { // which takes leave of those that have ended
		ticks += p.ticks + p.children
	}
	return childrenTime() + float64(ticks)*10
}

func (g *instance) processes() map[int]process {
	root := 0
	if g.command.Process != nil && g.command.ProcessState == nil {
		root = g.command.Process.Pid
	}
	reap(root) // or what sandboxes leave behind would fill the table of processes
	return processesOf(root, g.dir)
}

// sandboxCount counts sandboxes.
func sandboxCount(all map[int]process) (count int) {
	for _, p := range all {
		if p.name == "runsc-sandbox" {
			count++
		}
	}
	return count
}

const (
	// lookEvery is how long serve and its processes must be idle to be quiet, idleTicks the processor time that counts
	// as idle.
	lookEvery    = 120 * time.Millisecond
	idleTicks    = 1
	quietTimeout = time.Minute
)

// waitQuiet waits until serve and its sandboxes are idle and at least waiting sandboxes wait: no process started or
// ended, and none used processor time. So the next figure includes neither the cleanup of the last program nor the
// refill of the pool.
func (g *instance) waitQuiet(ctx context.Context, waiting int) error {
	before := g.processes()
	for end := time.Now().Add(quietTimeout); ; {
		if err := sleep.For(ctx, lookEvery); err != nil {
			return err
		}
		now := g.processes()
		if sandboxCount(now) >= waiting && busy(before, now) <= idleTicks {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("serve does not come to rest: %d sandboxes wait, want %d; %d ticks in %v", sandboxCount(now), waiting, busy(before, now), lookEvery)
		}
		before = now
	}
}

// busy is the processor time between two looks, in ticks. A process that came or went counts as much.
func busy(before, now map[int]process) (ticks uint64) {
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

// waitExit waits until no process of serve is left.
func (g *instance) waitExit() error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		reap(0) // serve itself was waited for
		left := processesOf(0, g.dir)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("serve has left %d processes", len(left))
		}
	}
}

// use is the memory of processes in bytes.
type use struct{ resident, proportional, unique float64 }

// add reads what one process uses.
func (u *use) add(pid int) error {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		if err != nil {
			continue // the heading
		}
		switch name {
		case "Rss":
			u.resident += kilobytes * 1024
		case "Pss":
			u.proportional += kilobytes * 1024
		case "Private_Clean", "Private_Dirty":
			u.unique += kilobytes * 1024
		}
	}
	return nil
}

// available is MemAvailable, in bytes.
func available() (float64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kilobytes * 1024, err
		}
	}
	return 0, errors.New("no MemAvailable in /proc/meminfo")
}
