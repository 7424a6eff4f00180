package main

import (
	"os"

	"golang.org/x/sys/windows"
)

func isTTY(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// hideInput has a console show nothing of what is typed until restore is called.
// What was typed before was shown: it goes.
func hideInput(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, windows.ENABLE_LINE_INPUT|windows.ENABLE_PROCESSED_INPUT)
}

// singleKeys has a console hand over each key at once and show none, until restore is called. Ctrl-C stays what it is.
// What was typed before goes.
func singleKeys(terminal *os.File) (restore func(), err error) {
	return withMode(terminal, windows.ENABLE_PROCESSED_INPUT)
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
