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
	"sync"
	"time"
)

// Control controls one zygote. Accept, Fork and Settle are called by one goroutine at a time, the others at any time.
type Control struct {
	listener *net.UnixListener
	conn     net.Conn
	lines    *bufio.Scanner

	mu      sync.Mutex // guards the rest
	forks   int
	current *Program
	waits   bool // the current process waits for a program
	ready   bool // it is connected
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

// Fork starts the process of the next program, which connects to the bridge with the number Next. With ahead set, it waits
// for a program that is not known yet.
func (z *Control) Fork(ahead bool) error {
	z.mu.Lock()
	z.forks++
	f := &Program{number: z.forks, ended: make(chan struct{})}
	z.current, z.waits, z.ready = f, ahead, false
	z.mu.Unlock()
	if _, err := fmt.Fprintf(z.conn, "%d\n", f.number); err != nil {
		f.err = ErrFailed
		close(f.ended)
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	go z.await(f)
	return nil
}

// Next returns the number of the process that Fork starts.
func (z *Control) Next() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.forks + 1
}

// MarkReady says that a process is connected, if it waits.
func (z *Control) MarkReady(f *Program) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.ready = z.waits && z.current == f
}

// Waits reports whether the current process waits for a program.
func (z *Control) Waits() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.waits
}

// Claim takes a process. It returns false if it does not wait for a program, as after a Claim.
func (z *Control) Claim(f *Program) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.waits || z.current != f {
		return false
	}
	z.waits, z.ready = false, false
	return true
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
	current := z.Current()
	if current == nil {
		return nil
	}
	limit := time.NewTimer(EndLimit)
	defer limit.Stop()
	select {
	case <-current.ended:
	case <-limit.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return current.Failure()
}

// Failure returns why no other program may run after this one, or nil. A program can end with any status, so a status
// other than 0 says nothing about the zygote.
func (f *Program) Failure() error {
	if !f.hasEnded() {
		return errors.New("the last program does not end")
	}
	if f.err == nil && f.status != 0 {
		return fmt.Errorf("the last program ended with status %d", f.status)
	}
	return f.err
}

// Rank is the higher, the sooner the zygote has a process for a program.
func (z *Control) Rank() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	switch {
	case z.ready:
		return 3
	case z.waits:
		return 2
	case z.current == nil || z.current.hasEnded():
		return 1
	}
	return 0
}

func (f *Program) hasEnded() bool {
	select {
	case <-f.ended:
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

// Programs returns how many programs were begun.
func (z *Control) Programs() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.waits {
		return z.forks - 1
	}
	return z.forks
}

// Current returns the running program, or the last one, or the process that waits; nil before the first.
func (z *Control) Current() *Program {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.current
}

// Ended is closed when no process of the program is left, or the zygote has ended.
func (f *Program) Ended() <-chan struct{} { return f.ended }

// Status waits for the end and returns the exit status, 128 plus the number of a signal that ended it. It returns an error
// if the zygote has failed.
func (f *Program) Status() (int, error) {
	<-f.ended
	return f.status, f.err
}
