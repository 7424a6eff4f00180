package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sallyport/bench/procs"
)

// usedTime is the processor time, in milliseconds, of serve and all that it started so far, with every child of this process that has ended.
func (g *instance) usedTime() float64 {
	running := procs.Used(g.processes()) // which takes leave of those that have ended
	return procs.ChildrenTime() + running
}

func (g *instance) processes() map[int]procs.Process {
	root := 0
	if g.command.Process != nil && g.command.ProcessState == nil {
		root = g.command.Process.Pid
	}
	procs.Reap(root) // or what sandboxes leave behind would fill the table of processes
	return procs.Of(root, g.dir)
}

// waitQuiet waits until serve and its sandboxes are idle and at least waiting sandboxes wait. So the next figure includes
// neither the cleanup of the last program nor the refill of the pool.
func (g *instance) waitQuiet(ctx context.Context, waiting int) error {
	return procs.WaitQuiet(ctx, g.processes, waiting)
}

// waitExit waits until no process of serve is left.
func (g *instance) waitExit() error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		procs.Reap(0) // serve itself was waited for
		left := procs.Of(0, g.dir)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("serve has left %d processes", len(left))
		}
	}
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
