package procs

import (
	"os"
	"os/exec"
	"testing"
)

// TestBelonging: a process is found by its command line, and its children by their parent.
func TestBelonging(t *testing.T) {
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sleep 60 & echo started; wait", dir+"/x")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	found := Of(0, dir)
	var names []string
	for _, p := range found {
		names = append(names, p.Name)
		if p.Parent == command.Process.Pid {
			child, err := os.FindProcess(p.PID)
			if err != nil {
				t.Fatal(err)
			}
			defer child.Kill()
		}
	}
	if len(found) != 2 || found[command.Process.Pid].Name != "sh" {
		t.Errorf("found %v, want sh and its sleep", names)
	}
	if mine := Of(os.Getpid(), "/no such folder"); len(mine) < 3 {
		t.Errorf("%d descend from this process, want itself, sh and sleep", len(mine))
	}
	_ = command.Process.Kill()
	_ = command.Wait()
}

func TestBusy(t *testing.T) {
	before := map[int]Process{1: {ticks: 5}, 2: {ticks: 10}}
	for _, test := range []struct {
		now  map[int]Process
		want uint64
	}{
		{before, 0},
		{map[int]Process{1: {ticks: 6}, 2: {ticks: 12}}, 3},
		{map[int]Process{1: {ticks: 5}}, 100},
		{map[int]Process{1: {ticks: 5}, 2: {ticks: 10}, 3: {ticks: 7}}, 100},
	} {
		if got := Busy(before, test.now); got != test.want {
			t.Errorf("%v: %d ticks, want %d", test.now, got, test.want)
		}
	}
}
