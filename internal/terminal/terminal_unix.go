//go:build unix

// Package terminal configures and reads terminals of Unix and consoles of Windows.
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

// HideInput turns off the echo of a terminal until restore is called. It discards pending input, which was echoed.
func HideInput(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, func(t *unix.Termios) { t.Lflag = t.Lflag&^unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG })
}

// SingleKeys makes a terminal deliver each key at once, without echo, until restore is called. Ctrl-C keeps its
// function. It discards pending input.
func SingleKeys(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, deliverKeys)
}

// SingleKeysNoSuspend is [SingleKeys] for full-screen programs: Ctrl-Z does not suspend the process.
func SingleKeysNoSuspend(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, func(t *unix.Termios) { deliverKeys(t); t.Cc[unix.VSUSP] = 0 })
}

func deliverKeys(t *unix.Termios) {
	t.Lflag = t.Lflag&^(unix.ECHO|unix.ICANON) | unix.ISIG
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
}

// Size returns the size of a terminal, 0 if unknown.
func Size(terminal *os.File) (width, height int) {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// SizeChanges signals changes of the terminal's size, until stop is called.
func SizeChanges() (changes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// FullScreen enables drawing sequences until restore is called. On Unix they are always enabled.
func FullScreen(*os.File) (restore func(), err error) { return func() {}, nil }

// withMode changes the input mode of a terminal.
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
