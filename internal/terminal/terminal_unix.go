//go:build unix

// Package terminal reads keys from terminals of Unix and consoles of Windows, and tells what they are.
package terminal

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil
}

// HideInput has a terminal show nothing of what is typed until restore is called.
// What was typed before was shown: it goes.
func HideInput(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, func(t *unix.Termios) { t.Lflag = t.Lflag&^unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG })
}

// SingleKeys has a terminal hand over each key at once and show none, until restore is called. Ctrl-C stays what it is.
// What was typed before goes.
func SingleKeys(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, func(t *unix.Termios) {
		t.Lflag = t.Lflag&^(unix.ECHO|unix.ICANON) | unix.ISIG
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	})
}

// Size is how large a terminal is, 0 where it does not say.
func Size(terminal *os.File) (width, height int) {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// SizeChanges tells of a terminal that has another size now, until stop is called.
func SizeChanges() (changes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// FullScreen has a terminal understand the sequences that draw on it, until restore is called. It does so already.
func FullScreen(*os.File) (restore func(), err error) { return func() {}, nil }

// HeldKeys is [SingleKeys] for who draws on all of the terminal: Ctrl-Z does not stop us in the middle of it.
func HeldKeys(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, func(t *unix.Termios) {
		t.Lflag = t.Lflag&^(unix.ECHO|unix.ICANON) | unix.ISIG
		t.Cc[unix.VMIN], t.Cc[unix.VTIME], t.Cc[unix.VSUSP] = 1, 0, 0
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
