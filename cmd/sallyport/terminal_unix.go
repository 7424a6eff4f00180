//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

func isTTY(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil
}

// hideInput has a terminal show nothing of what is typed until restore is called.
// What was typed before was shown: it goes.
func hideInput(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, func(t *unix.Termios) { t.Lflag = t.Lflag&^unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG })
}

// singleKeys has a terminal hand over each key at once and show none, until restore is called. Ctrl-C stays what it is.
// What was typed before goes.
func singleKeys(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, func(t *unix.Termios) {
		t.Lflag = t.Lflag&^(unix.ECHO|unix.ICANON) | unix.ISIG
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	})
}

// withMode has a terminal take input in another way.
func withMode(terminal *os.File, change func(*unix.Termios)) (restore func(), err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	now := *before
	change(&now)
	if err := unix.IoctlSetTermios(fd, setTermios, &now); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }, nil
}
