//go:build !unix

package audit

import "io/fs"

// removed returns false: on this system an open file cannot be removed.
func removed(fs.FileInfo) bool { return false }
