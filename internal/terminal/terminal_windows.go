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

// HideInput turns off the echo of a console until restore is called. It discards pending input, which was echoed.
func HideInput(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, windows.ENABLE_LINE_INPUT|windows.ENABLE_PROCESSED_INPUT)
}

// SingleKeys makes a console deliver each key at once, without echo, until restore is called. Ctrl-C keeps its
// function. It discards pending input.
func SingleKeys(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, windows.ENABLE_PROCESSED_INPUT)
}

// SingleKeysNoSuspend is SingleKeys for full-screen programs.
func SingleKeysNoSuspend(terminal *os.File) (restore func(), err error) { return SingleKeys(terminal) }

// Size returns the size of a console, 0 if unknown.
func Size(terminal *os.File) (width, height int) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(terminal.Fd()), &info); err != nil {
		return 0, 0
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1
}

// SizeChanges signals nothing on Windows: callers must poll Size.
func SizeChanges() (changes <-chan os.Signal, stop func()) { return nil, func() {} }

// FullScreen enables drawing sequences until restore is called.
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

// withMode sets the flags of a console's input mode.
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
