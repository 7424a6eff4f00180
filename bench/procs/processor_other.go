//go:build !linux

package procs

import "errors"

// Adopt is for Linux alone, as the sandbox is.
func Adopt() error { return errors.New("not on this system") }

// Reap has nothing to do.
func Reap(...int) {}

// ChildrenTime is unknown here.
func ChildrenTime() float64 { return 0 }
