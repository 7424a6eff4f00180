//go:build unix

package image

import "syscall"

func setUmask(mask int) (restore func()) {
	before := syscall.Umask(mask)
	return func() { syscall.Umask(before) }
}
