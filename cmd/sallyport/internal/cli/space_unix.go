//go:build linux || darwin

package cli

import "golang.org/x/sys/unix"

// FreeSpace returns how many bytes and files this user can still write to a file system. If it does not count files, files is 1.
func FreeSpace(dir string) (bytes, files uint64, ok bool) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, 0, false
	}
	files = stat.Ffree
	if stat.Files == 0 {
		files = 1
	}
	return stat.Bavail * uint64(stat.Bsize), files, true //nolint:gosec // a size is not negative
}
