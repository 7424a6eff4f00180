//go:build unix

package main

import (
	"os"
	"os/signal"

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

// sizeOf is how large a terminal is, 0 where it does not say.
func sizeOf(terminal *os.File) paper {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return paper{}
	}
	return paper{width: int(size.Col), height: int(size.Row)}
}

// sizeChanges tells of a terminal that has another size now, until stop is called.
func sizeChanges() (changes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// fullScreen has a terminal understand the sequences that draw on it, until restore is called. It does so already.
func fullScreen(*os.File) (restore func(), err error) { return func() {}, nil }

// heldKeys is singleKeys for who draws on all of the terminal: Ctrl-Z does not stop us in the middle of it.
func heldKeys(terminal *os.File) (restore func(), err error) {
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
