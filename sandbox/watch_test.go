//go:build linux

package sandbox

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// memfd returns a file like a sentry's memory, with size bytes in use.
func memfd(t *testing.T, size int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("runsc-memory", unix.MFD_CLOEXEC)
	must(t, err)
	f := os.NewFile(uintptr(fd), "runsc-memory")
	grow(t, f, size)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// likeSentry starts a process that has the files open and next to no memory of its own, and returns its id and what ends it.
func likeSentry(t *testing.T, files ...*os.File) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.ExtraFiles = files
	must(t, cmd.Start())
	end = sync.OnceFunc(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

func grow(t *testing.T, f *os.File, size int) {
	t.Helper()
	_, err := f.Write(make([]byte, size))
	must(t, err)
}

// watchMemory runs a watcher that has to be told to stop, unless it has told of too much memory; exceeded waits for that as long as it is given.
func watchMemory(t *testing.T, sentry func() int, limit int64) (exceeded func(wait time.Duration) bool, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, done := atomic.Int64{}, make(chan struct{})
	go func() {
		defer close(done)
		watch(ctx, watchLimits{sentry: sentry, gauge: &memoryGauge{}, memory: limit}, func(why Status) {
			if why == OutOfMemory {
				told.Add(1)
			}
		})
	}()
	exceeded = func(wait time.Duration) bool {
		select {
		case <-done:
			return told.Load() == 1
		case <-time.After(wait):
			return false
		}
	}
	return exceeded, func() { cancel(); <-done }
}

func TestMemoryIsWatched(t *testing.T) {
	f := memfd(t, 4<<20)
	pid, _ := likeSentry(t, f)
	exceeded, stop := watchMemory(t, func() int { return pid }, 8<<20)
	defer stop()
	if exceeded(5 * memoryPoll) {
		t.Error("4 MiB of 8 are too much")
	}
	must(t, f.Truncate(1<<40)) // a size without blocks uses nothing
	if exceeded(5 * memoryPoll) {
		t.Error("a hole is too much")
	}
	_, err := f.Seek(0, 2)
	must(t, err)
	grow(t, f, 5<<20)
	if !exceeded(time.Minute) {
		t.Error("9 MiB of 8 are not too much")
	}
}

func TestMemoryOfASentryThatComesAndGoes(t *testing.T) {
	var pid atomic.Int64
	exceeded, stop := watchMemory(t, func() int { return int(pid.Load()) }, 1<<20)
	defer stop()
	if exceeded(5 * memoryPoll) {
		t.Error("no sentry uses too much")
	}
	start := func(files ...*os.File) (end func()) {
		id, end := likeSentry(t, files...)
		pid.Store(int64(id))
		return end
	}
	start() // no memory yet
	if exceeded(5 * memoryPoll) {
		t.Error("a sentry without memory uses too much")
	}
	end := start(memfd(t, 1<<10))
	if exceeded(5 * memoryPoll) {
		t.Error("1 KiB is too much")
	}
	end()
	if exceeded(5 * memoryPoll) {
		t.Error("a sentry that has gone uses too much")
	}
	start(memfd(t, 2<<20))
	if !exceeded(time.Minute) {
		t.Error("2 MiB of 1 are not too much")
	}
}
