//go:build !linux && !darwin

package cli

// FreeSpace does not know here.
func FreeSpace(string) (bytes, files uint64, ok bool) { return 0, 0, false }
