//go:build linux

// Package zygote is the host's side of a sandbox in which the first process, the zygote, forks one process for each program and
// runs no program itself. codegen/runtime/native/zygote.c is the other side and describes the protocol.
package zygote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Control controls one zygote. Its methods are called by one goroutine at a time.
type Control struct {
	listener *net.UnixListener
	conn     net.Conn
	lines    *bufio.Scanner
	programs int
	current  *Program
}

// Program is the process of one program.
type Program struct {
	number int
	ended  chan struct{} // closed when no process of the program is left, or the zygote has ended
	status int           // valid after ended
	err    error         // valid after ended: the zygote has ended or failed
}

const (
	// failedFork is added to the number of a step that failed in the zygote.
	failedFork = 256
	// EndLimit is the time limit for the processes of a program to end.
	EndLimit = 2 * time.Second
)

// ErrFailed means that the zygote ended, or could not fork.
var ErrFailed = errors.New("the process that forks programs failed")

// Listen listens for the zygote of a sandbox that is about to start, in the folder of its sockets.
func Listen(sockets string) (*Control, error) {
	path := filepath.Join(sockets, "zygote.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the zygote: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the zygote: %w", err), listener.Close())
	}
	return &Control{listener: listener}, nil
}

// Accept waits for the zygote's connection, the only one that is accepted.
func (z *Control) Accept(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = z.listener.Close() })
	defer stop()
	conn, err := z.listener.Accept()
	_ = z.listener.Close()
	if err != nil {
		return fmt.Errorf("wait for the zygote: %w", errors.Join(context.Cause(ctx), err))
	}
	z.conn, z.lines = conn, bufio.NewScanner(conn)
	return nil
}

// Fork starts the process of the next program, which connects to a bridge of that number.
func (z *Control) Fork(number int) error {
	z.programs++
	z.current = &Program{number: number, ended: make(chan struct{})}
	if _, err := fmt.Fprintf(z.conn, "%d\n", number); err != nil {
		z.current.err = ErrFailed
		close(z.current.ended)
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	go z.await(z.current)
	return nil
}

// await reads the zygote's report about a process.
func (z *Control) await(f *Program) {
	defer close(f.ended)
	f.err = ErrFailed
	if !z.lines.Scan() {
		return
	}
	number, status, _ := strings.Cut(z.lines.Text(), " ")
	value, err := strconv.Atoi(status)
	if err != nil || number != strconv.Itoa(f.number) {
		return
	}
	f.status = value
	if value >= failedFork {
		f.err = fmt.Errorf("%w: step %d", ErrFailed, value-failedFork)
		return
	}
	f.err = nil
}

// Settle waits until no process of the last program is left. Another program may run if it returns nil.
func (z *Control) Settle(ctx context.Context) error {
	if z.current == nil {
		return nil
	}
	limit := time.NewTimer(EndLimit)
	defer limit.Stop()
	select {
	case <-z.current.ended:
	case <-limit.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return z.current.Failure()
}

// Failure returns why no other program may run after this one, or nil. A program can end with any status, so a status
// other than 0 says nothing about the zygote.
func (f *Program) Failure() error {
	select {
	case <-f.ended:
	default:
		return errors.New("the last program does not end")
	}
	if f.err == nil && f.status != 0 {
		return fmt.Errorf("the last program ended with status %d", f.status)
	}
	return f.err
}

// Settled reports whether Settle returns at once.
func (z *Control) Settled() bool {
	if z.current == nil {
		return true
	}
	select {
	case <-z.current.ended:
		return true
	default:
		return false
	}
}

// Close disconnects from the zygote, which then ends.
func (z *Control) Close() {
	_ = z.listener.Close()
	if z.conn != nil {
		_ = z.conn.Close()
	}
}

// Programs returns how many programs were forked.
func (z *Control) Programs() int { return z.programs }

// Current returns the running program, or the last one; nil before the first.
func (z *Control) Current() *Program { return z.current }

// Ended is closed when no process of the program is left, or the zygote has ended.
func (f *Program) Ended() <-chan struct{} { return f.ended }

// Status waits for the end and returns the exit status, 128 plus the number of a signal that ended it. It returns an error
// if the zygote has failed.
func (f *Program) Status() (int, error) {
	<-f.ended
	return f.status, f.err
}
