package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
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
	waits       string  // a program that prints a line and waits until its input ends
	ratio       float64 // what of the bare interpreter's time it may take
	seriesUsed  float64 // what processor time one of a series of programs may take, in milliseconds
}

func languages() []language {
	return []language{
		{"python", "/usr/bin/python3", "-c", "print(6 * 7)", "42", "import sys; print(flush=True); sys.stdin.read()", 1, 28},
		{"typescript", "/usr/bin/node", "-e", "console.log(6 * 7)", "42", "console.log(); process.stdin.resume()", .5, 30},
	}
}

// bare runs the line in the interpreter alone and returns how long that took, in milliseconds.
func (l language) bare(ctx context.Context) (took float64, err error) {
	took, _, err = l.alone(ctx)
	return took, err
}

// alone is bare, with the processor time that the interpreter has used.
func (l language) alone(ctx context.Context) (took, used float64, err error) {
	command := exec.CommandContext(ctx, l.interpreter, l.eval, l.line)
	begin := time.Now()
	out, err := command.Output()
	took = milliseconds(time.Since(begin))
	if err != nil || string(bytes.TrimSpace(out)) != l.prints {
		return 0, 0, fmt.Errorf("run %s: %q, %w", l.interpreter, out, err)
	}
	return took, milliseconds(command.ProcessState.UserTime() + command.ProcessState.SystemTime()), nil
}

// wait starts the interpreter alone, waits until it is ready, and returns its pid; it lives until end, which must not
// be called after an error.
func (l language) wait(ctx context.Context) (pid int, end func() error, err error) {
	command := exec.CommandContext(ctx, l.interpreter, l.eval, l.waits)
	in, err := command.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return 0, nil, errors.Join(err, in.Close())
	}
	if err := command.Start(); err != nil {
		return 0, nil, err
	}
	end = func() error { return errors.Join(in.Close(), command.Wait()) }
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return 0, nil, errors.Join(fmt.Errorf("%s says nothing: %w", l.interpreter, err), end())
	}
	return command.Process.Pid, end, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
