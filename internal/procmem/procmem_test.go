//go:build linux

package procmem_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"sallyport/internal/procmem"
)

// child is a process of this test binary that waits until its standard input ends.
func child(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	if _, err := stdin.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil { // it has started
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func measure(t *testing.T, pids ...int) procmem.Use {
	t.Helper()
	use, err := procmem.Of(pids...)
	if err != nil {
		t.Fatal(err)
	}
	return use
}

// Two processes count twice, two of one address space once. A thread is such a process: /proc has it by its own number.
func TestOf(t *testing.T) {
	a, b := child(t), child(t)
	one, both := measure(t, a), measure(t, a, b)
	if one.Proportional == 0 || one.Proportional > one.Resident || one.Unique > one.Proportional {
		t.Errorf("one process: %+v", one)
	}
	if both.Resident < one.Resident*3/2 {
		t.Errorf("two processes have %d bytes, one has %d", both.Resident, one.Resident)
	}
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil || len(entries) < 2 {
		t.Fatal("this process has one thread", err)
	}
	first, _ := strconv.Atoi(entries[0].Name())
	second, _ := strconv.Atoi(entries[1].Name())
	if got, want := measure(t, first, second).Resident, measure(t, first).Resident; got > want*3/2 {
		t.Errorf("two threads have %d bytes, one has %d", got, want)
	}
	if _, err := procmem.Of(1 << 30); err == nil {
		t.Error("a process that is not there was measured")
	}
}
