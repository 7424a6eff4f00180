//go:build !linux && !darwin

package main

// freeSpace does not know here.
func freeSpace(string) (bytes, files uint64, ok bool) { return 0, 0, false }
