package upstreamscmd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/testutil/ptytest"
)

func TestReadHidden(t *testing.T) {
	for name, test := range map[string]struct{ typed, want, fails string }{
		"secret":   {"s3cret with $igns\n", "s3cret with $igns", ""},
		"mistyped": {"s3crex\x7ft\n", "s3cret", ""},
		"end":      {"\x04", "", ""},
		"long":     {strings.Repeat("s3cret", 1000) + "\n", "", "no line that long"},
	} {
		t.Run(name, func(t *testing.T) {
			person, terminal := ptytest.Open(t)
			before := ptytest.Flags(t, terminal)
			got, err := readHidden(t.Context(), terminal, func() {
				if _, err := person.WriteString(test.typed); err != nil {
					t.Error(err)
				}
			})
			if got != test.want || (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("read %q, %v", got, err)
			}
			if after := ptytest.Flags(t, terminal); after != before {
				t.Errorf("the terminal's flags were %#x and are %#x", before, after)
			}
			if _, err := terminal.WriteString("the end"); err != nil {
				t.Fatal(err)
			}
			if shown := ptytest.ReadUntil(t, person, "the end"); strings.Contains(shown, "s3c") {
				t.Errorf("the terminal shows %q", shown)
			}
		})
	}
}

// Ctrl-C leaves the terminal as it was, too.
func TestReadHiddenIsCalledOff(t *testing.T) {
	person, terminal := ptytest.Open(t)
	before := ptytest.Flags(t, terminal)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := readHidden(ctx, terminal, func() {
		if ptytest.Flags(t, terminal)&unix.ECHO != 0 {
			t.Error("what is typed is shown")
		}
		time.AfterFunc(10*time.Millisecond, cancel)
	})
	if !errors.Is(err, context.Canceled) || ptytest.Flags(t, terminal) != before {
		t.Errorf("%v, flags %#x before and %#x after", err, before, ptytest.Flags(t, terminal))
	}
	if _, err := person.WriteString("\n"); err != nil { // the reader ends
		t.Error(err)
	}
}
