//go:build !linux

package main

import "errors"

// adopt is for Linux alone, as the sandbox is.
func adopt() error { return errors.New("not on this system") }

// reap has nothing to do.
func reap(int) {}

// childrenTime is unknown here.
func childrenTime() float64 { return 0 }
