//go:build !linux && !darwin

package cli

// FreeSpace is not supported on this system: ok is false.
func FreeSpace(string) (bytes, files uint64, ok bool) { return 0, 0, false }
