package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// IsTerminal reports whether a file is a console.
func IsTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// HideInput has a console show nothing of what is typed until restore is called.
// What was typed before was shown: it goes.
func HideInput(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, windows.ENABLE_LINE_INPUT|windows.ENABLE_PROCESSED_INPUT)
}

// SingleKeys has a console hand over each key at once and show none, until restore is called. Ctrl-C stays what it is.
// What was typed before goes.
func SingleKeys(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, windows.ENABLE_PROCESSED_INPUT)
}

// HeldKeys is SingleKeys for who draws on all of the console.
func HeldKeys(terminal *os.File) (restore func(), err error) { return SingleKeys(terminal) }

// Size is how large a console is, 0 where it does not say.
func Size(terminal *os.File) (width, height int) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(terminal.Fd()), &info); err != nil {
		return 0, 0
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1
}

// SizeChanges tells of nothing: a console's new size is seen at the next look.
func SizeChanges() (changes <-chan os.Signal, stop func()) { return nil, func() {} }

// FullScreen has a console understand the sequences that draw on it, until restore is called.
func FullScreen(terminal *os.File) (restore func(), err error) {
	console := windows.Handle(terminal.Fd())
	var before uint32
	if err := windows.GetConsoleMode(console, &before); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(console, before|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING|windows.ENABLE_PROCESSED_OUTPUT); err != nil {
		return nil, err
	}
	return func() { _ = windows.SetConsoleMode(console, before) }, nil
}

// withMode has a console take input in the way that the flags say, of those for input by lines.
func withMode(terminal *os.File, flags uint32) (restore func(), err error) {
	console := windows.Handle(terminal.Fd())
	var before uint32
	if err := windows.GetConsoleMode(console, &before); err != nil {
		return nil, err
	}
	if err := windows.FlushConsoleInputBuffer(console); err != nil {
		return nil, err
	}
	const all = windows.ENABLE_ECHO_INPUT | windows.ENABLE_LINE_INPUT | windows.ENABLE_PROCESSED_INPUT
	if err := windows.SetConsoleMode(console, before&^all|flags); err != nil {
		return nil, err
	}
	return func() { _ = windows.SetConsoleMode(console, before) }, nil
}
