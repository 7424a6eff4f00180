package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// language is one that programs are written in, and its interpreter on the host, which is the one in the sandbox too.
type language struct {
	name        string
	interpreter string
	eval        string // the flag for a program
	line        string // the program of one line
	prints      string
	ratio       float64 // what of the bare interpreter's time it may take
}

func languages() []language {
	return []language{
		{"python", "/usr/bin/python3", "-c", "print(6 * 7)", "42", 1},
		{"typescript", "/usr/bin/node", "-e", "console.log(6 * 7)", "42", .5},
	}
}

// bare runs the line in the interpreter alone and returns how long that took, in milliseconds.
func (l language) bare(ctx context.Context) (float64, error) {
	begin := time.Now()
	out, err := exec.CommandContext(ctx, l.interpreter, l.eval, l.line).Output()
	took := milliseconds(time.Since(begin))
	if err != nil || string(bytes.TrimSpace(out)) != l.prints {
		return 0, fmt.Errorf("run %s: %q, %w", l.interpreter, out, err)
	}
	return took, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
