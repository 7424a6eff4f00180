//go:build linux

package sandbox

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

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/sandbox/bridge"
)

// zygote is the host's side of a sandbox whose first process forks one process for each program and runs no program itself.
// codegen/runtime/native/zygote.c is the other side. Its methods are called by one goroutine at a time.
type zygote struct {
	listener *net.UnixListener
	conn     net.Conn
	lines    *bufio.Scanner
	programs int
	since    time.Time // of the start
	lastUsed time.Time
	// current is the process of the running program, or of the last one; nil before the first.
	current *forked
}

// forked is the process of one program.
type forked struct {
	number int
	ended  chan struct{} // closed when no process of the program is left, or the zygote has ended
	status int           // valid after ended
	err    error         // valid after ended: the zygote has ended or failed
}

const (
	// failedFork is added to the number of a step that failed in the zygote.
	failedFork = 256
	// forkEndLimit is the time limit for the processes of a program to end.
	forkEndLimit = 2 * time.Second
	// forkEndCPU is their limit of processor time after the result: a program that goes on is in no queue.
	forkEndCPU = 200 * time.Millisecond
)

var errZygote = errors.New("the process that forks programs failed")

// zygoteRights are what the zygote needs to separate programs; the programs have none of them.
func zygoteRights() *specs.LinuxCapabilities {
	rights := []string{"CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL"}
	return &specs.LinuxCapabilities{Bounding: rights, Effective: rights, Permitted: rights}
}

// zygoteSettings are the settings of zygote.c for sandboxes of a kind.
func zygoteSettings(k kind) string {
	var soft, hard uint64
	for _, limit := range rlimits(k) {
		if limit.Type == "RLIMIT_AS" {
			soft, hard = limit.Soft, limit.Hard
		}
	}
	options := func(m specs.Mount) string { return strings.Join(m.Options[2:], ",") } // without the flags nosuid and nodev
	return fmt.Sprintf("%d %d %d %d %d %d %s %s", nobodyID, k.processes, k.openFiles, k.fileSize, soft, hard, options(scratch("/tmp")), options(workspaceMount(k)))
}

// listenZygote listens for the zygote of a sandbox that is about to start.
func listenZygote(sockets string) (*zygote, error) {
	path := filepath.Join(sockets, "zygote.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the zygote: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the zygote: %w", err), listener.Close())
	}
	return &zygote{listener: listener, since: time.Now()}, nil
}

// accept waits for the zygote's connection, the only one that is accepted.
func (z *zygote) accept(ctx context.Context) error {
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

// fork starts the process of the next program, which connects to a bridge of that number.
func (z *zygote) fork(number int) error {
	z.programs++
	z.current = &forked{number: number, ended: make(chan struct{})}
	if _, err := fmt.Fprintf(z.conn, "%d\n", number); err != nil {
		z.current.err = errZygote
		close(z.current.ended)
		return fmt.Errorf("%w: %w", errZygote, err)
	}
	go z.await(z.current)
	return nil
}

// await reads the zygote's report about a process.
func (z *zygote) await(f *forked) {
	defer close(f.ended)
	f.err = errZygote
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
		f.err = fmt.Errorf("%w: step %d", errZygote, value-failedFork)
		return
	}
	f.err = nil
}

// settle waits until no process of the last program is left. Another program may run if it returns nil.
func (z *zygote) settle(ctx context.Context) error {
	if z.current == nil {
		return nil
	}
	limit := time.NewTimer(forkEndLimit)
	defer limit.Stop()
	select {
	case <-z.current.ended:
	case <-limit.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return z.current.failure()
}

// failure returns why no other program may run after this one, or nil. A program can end with any status, so a status
// other than 0 says nothing about the zygote.
func (f *forked) failure() error {
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

// settled reports whether settle returns at once.
func (z *zygote) settled() bool {
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

// close disconnects from the zygote, which then ends.
func (z *zygote) close() {
	_ = z.listener.Close()
	if z.conn != nil {
		_ = z.conn.Close()
	}
}

// beginProgram makes a used or new sandbox with a zygote ready for one program: a bridge of its own and a forked process.
func (b *instance) beginProgram(ctx context.Context) error {
	z := b.zygote
	if err := z.settle(ctx); err != nil {
		return err
	}
	b.stdout.flush() // what the last program left in the pipes goes to the preamble
	b.stderr.flush()
	if b.bridge != nil {
		if err := b.bridge.Close(); err != nil {
			return err
		}
	}
	number := z.programs + 1
	var err error
	b.bridge, err = bridge.Listen(filepath.Join(b.sockets(), strconv.Itoa(number)+".sock"), bridge.Options{Logger: b.host.log})
	if err != nil {
		return err
	}
	return z.fork(number)
}

// ended is closed when the guest of the current program has ended.
func (b *instance) ended() <-chan struct{} {
	if b.zygote != nil && b.zygote.current != nil {
		return b.zygote.current.ended
	}
	return b.process.Done()
}

// exitStatus waits for the end of the guest and returns its exit status.
func (b *instance) exitStatus() (int, error) {
	if b.zygote != nil && b.zygote.current != nil {
		<-b.zygote.current.ended
		if b.zygote.current.err == nil {
			return b.zygote.current.status, nil
		}
	}
	return b.process.Wait()
}

// zygoteReady waits until the zygote is connected.
func (b *instance) zygoteReady(ctx context.Context) error {
	accepted := make(chan error, 1)
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.Go(func() { accepted <- b.zygote.accept(ctx) })
	select {
	case err := <-accepted:
		return err
	case <-b.process.Done():
		return errZygote
	}
}
