//go:build !linux

package image

// syncAll does nothing here, where no sandbox runs.
func syncAll(string) error { return nil }
