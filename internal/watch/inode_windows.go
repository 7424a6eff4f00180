package watch

import "io/fs"

// inode is not told here.
func inode(fs.FileInfo) uint64 { return 0 }
