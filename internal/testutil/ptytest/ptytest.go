//go:build linux

// Package ptytest makes pseudoterminals for tests.
package ptytest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Open returns both ends of a new terminal: the user's and the program's.
func Open(t *testing.T) (person, terminal *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	raw := int(person.Fd())
	number, err := unix.IoctlGetUint32(raw, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(raw, unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return person, terminal
}

// Flags returns the local modes of a terminal, as of termios(3).
func Flags(t *testing.T, terminal *os.File) uint32 {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag
}

// ReadUntil returns the output shown to the user, up to the text.
func ReadUntil(t *testing.T, person *os.File, end string) string {
	t.Helper()
	var all strings.Builder
	for part := make([]byte, 4096); !strings.Contains(all.String(), end); {
		n, err := person.Read(part)
		if err != nil {
			t.Fatalf("after %q: %v", all.String(), err)
		}
		all.Write(part[:n])
	}
	return all.String()
}
