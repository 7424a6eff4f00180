//go:build !linux

package procmem

import "errors"

// Use is the memory of processes, in bytes.
type Use struct {
	// Resident, Proportional and Unique are unknown here.
	Resident, Proportional, Unique int64
}

// Of is for Linux alone, as the sandbox is.
func Of(...int) (Use, error) {
	return Use{}, errors.New("the memory of processes is measured on Linux only")
}
