//go:build linux

package runsc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Children returns the live child processes of all threads of a process.
func Children(pid int) []int {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	var all []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// descendants returns all descendants of a process.
func descendants(pid int) []int {
	all := Children(pid)
	for i := 0; i < len(all); i++ {
		all = append(all, Children(all[i])...)
	}
	return all
}
