//go:build !unix

package diskusage

import "io/fs"

// measure returns the size of a file.
func measure(info fs.FileInfo) (size int64, id file, linked bool) { return info.Size(), file{}, false }
