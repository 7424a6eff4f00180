//go:build linux

package sandbox

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// memfd makes this process look like a sentry that has size bytes in use.
func memfd(t *testing.T, size int) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("runsc-memory", unix.MFD_CLOEXEC)
	must(t, err)
	f := os.NewFile(uintptr(fd), "runsc-memory")
	grow(t, f, size)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func grow(t *testing.T, f *os.File, size int) {
	t.Helper()
	_, err := f.Write(make([]byte, size))
	must(t, err)
}

// watchMemory runs a watcher that has to be told to stop, unless it has told of too much memory.
func watchMemory(t *testing.T, sentry func() int, limit int64) (exceeded func() bool, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, done := atomic.Int64{}, make(chan struct{})
	go func() {
		defer close(done)
		watch(ctx, watched{sentry: sentry, memory: limit}, func(why Status) {
			if why == OutOfMemory {
				told.Add(1)
			}
		})
	}()
	exceeded = func() bool {
		select {
		case <-done:
			return told.Load() == 1
		case <-time.After(5 * memoryPoll):
			return false
		}
	}
	return exceeded, func() { cancel(); <-done }
}

func TestMemoryIsWatched(t *testing.T) {
	f := memfd(t, 4<<20)
	exceeded, stop := watchMemory(t, os.Getpid, 8<<20)
	defer stop()
	if exceeded() {
		t.Error("4 MiB of 8 are too much")
	}
	must(t, f.Truncate(1<<40)) // a size without blocks uses nothing
	if exceeded() {
		t.Error("a hole is too much")
	}
	_, err := f.Seek(0, 2)
	must(t, err)
	grow(t, f, 5<<20)
	if !exceeded() {
		t.Error("9 MiB of 8 are not too much")
	}
}

func TestMemoryOfASentryThatComesAndGoes(t *testing.T) {
	var pid atomic.Int64
	exceeded, stop := watchMemory(t, func() int { return int(pid.Load()) }, 1<<20)
	defer stop()
	if exceeded() {
		t.Error("no sentry uses too much")
	}
	pid.Store(int64(os.Getpid())) // no memory yet
	if exceeded() {
		t.Error("a sentry without memory uses too much")
	}
	f := memfd(t, 1<<10)
	if exceeded() {
		t.Error("1 KiB is too much")
	}
	must(t, f.Close())
	if exceeded() {
		t.Error("a sentry that has gone uses too much")
	}
	pid.Store(1 << 30)
	if exceeded() {
		t.Error("a process that never was uses too much")
	}
	pid.Store(int64(os.Getpid()))
	memfd(t, 2<<20)
	if !exceeded() {
		t.Error("2 MiB of 1 are not too much")
	}
}
