package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty returns both ends of a terminal.
func pty(t *testing.T) (person, terminal *os.File) {
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

func flags(t *testing.T, terminal *os.File) uint32 {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag
}

func TestReadHidden(t *testing.T) {
	for name, test := range map[string]struct{ typed, want, fails string }{
		"secret":   {"s3cret with $igns\n", "s3cret with $igns", ""},
		"mistyped": {"s3crex\x7ft\n", "s3cret", ""},
		"end":      {"\x04", "", ""},
		"long":     {strings.Repeat("s3cret", 1000) + "\n", "", "no line that long"},
	} {
		t.Run(name, func(t *testing.T) {
			person, terminal := pty(t)
			before := flags(t, terminal)
			got, err := readHidden(t.Context(), terminal, func() {
				if _, err := person.WriteString(test.typed); err != nil {
					t.Error(err)
				}
			})
			if got != test.want || (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("read %q, %v", got, err)
			}
			if after := flags(t, terminal); after != before {
				t.Errorf("the terminal's flags were %#x and are %#x", before, after)
			}
			if _, err := terminal.WriteString("the end"); err != nil {
				t.Fatal(err)
			}
			if shown := shownUntil(t, person, "the end"); strings.Contains(shown, "s3c") {
				t.Errorf("the terminal shows %q", shown)
			}
		})
	}
}

func shownUntil(t *testing.T, person *os.File, end string) string {
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

// Ctrl-C leaves the terminal as it was, too.
func TestReadHiddenIsCalledOff(t *testing.T) {
	person, terminal := pty(t)
	before := flags(t, terminal)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := readHidden(ctx, terminal, func() {
		if flags(t, terminal)&unix.ECHO != 0 {
			t.Error("what is typed is shown")
		}
		time.AfterFunc(10*time.Millisecond, cancel)
	})
	if !errors.Is(err, context.Canceled) || flags(t, terminal) != before {
		t.Errorf("%v, flags %#x before and %#x after", err, before, flags(t, terminal))
	}
	if _, err := person.WriteString("\n"); err != nil { // the reader ends
		t.Error(err)
	}
}
