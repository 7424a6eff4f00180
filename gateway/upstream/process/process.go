// Package process starts the program of an upstream in its own process group, with pipes, and ends the whole group.
package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The steps of stopping a process: its input is closed, then SIGTERM, then
// SIGKILL are sent to its group. Together they take less than 2 s.
const (
	afterEOF  = 600 * time.Millisecond
	afterTerm = 700 * time.Millisecond
	afterKill = 500 * time.Millisecond

	// pipeTimeout is how long the pipes of a dead process may stay open, held by
	// a grandchild that left the process group.
	pipeTimeout = 200 * time.Millisecond
)

// inheritedVars are the variables of the gateway that an upstream gets, in addition to XDG_*.
// All others may contain secrets that the upstream must not see.
var inheritedVars = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "SHELL", "TERM",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"} // additional certificate authorities

// Process is one running server.
type Process struct {
	runner runner
	Stdin  *os.File
	Stdout *os.File
	errors *os.File
	Stderr *Ring

	ended      chan struct{} // closed when the program has ended; then status may be read
	status     string        // "exited with status 1"
	Drained    chan struct{} // closed when stdout has been read to its end
	stderrDone chan struct{} // closed when stderr has been read to its end
	done       chan struct{} // closed when all of these are closed

	started time.Time
}

// runner runs the program of a Process.
type runner interface {
	// signal sends a signal to the program, unless it has ended.
	signal(sig syscall.Signal)
	// pid returns the ID of a process that belongs to it.
	pid() int
	// exitTimeout is how long its end may take after the end of its output.
	exitTimeout() time.Duration
}

// Command is the program to start: arguments, directory, and variables in addition to those of every upstream.
type Command struct {
	Command string
	Args    []string
	Dir     string
	Env     map[string]string
}

// Start starts the server, which outlives ctx.
func Start(ctx context.Context, s Command) (*Process, error) {
	if err := checkDir(s.Dir); err != nil {
		return nil, err
	}
	p, theirs, err := newProcess()
	if err != nil {
		return nil, err
	}
	defer theirs.close()
	g := &group{cmd: exec.CommandContext(context.WithoutCancel(ctx), s.Command, s.Args...)}
	g.cmd.Dir, g.cmd.Env, g.cmd.SysProcAttr = s.Dir, environment(os.Environ(), s.Env), ownGroup()
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = theirs.Stdin, theirs.Stdout, theirs.Stderr
	p.runner = g
	started := make(chan error)
	go p.run(g, started)
	if err := <-started; err != nil {
		p.closeOwn()
		return nil, startError(err)
	}
	go p.readStderr()
	return p, nil
}

// newProcess returns a process that has not been started, and the ends of its pipes for the program.
func newProcess() (*Process, Streams, error) {
	p := &Process{
		started: time.Now(), Stderr: &Ring{}, ended: make(chan struct{}), Drained: make(chan struct{}),
		stderrDone: make(chan struct{}), done: make(chan struct{}),
	}
	theirs, err := p.openPipes()
	if err != nil {
		theirs.close()
		p.closeOwn()
		return nil, Streams{}, fmt.Errorf("open pipes: %w", err)
	}
	return p, theirs, nil
}

// closeOwn closes our ends of the pipes.
func (p *Process) closeOwn() { closeAll([]*os.File{p.Stdin, p.Stdout, p.errors}) }

func (p *Process) readStderr() {
	defer close(p.stderrDone)
	p.Stderr.Fill(p.errors)
}

// checkDir returns an error if the working directory does not exist. The error of a start would name the command.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err
	} else if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("its cwd %q: %w", dir, err)
	}
	return nil
}

// Streams are the standard streams of a program.
type Streams struct {
	Stdin, Stdout, Stderr *os.File
	// Log adds a line of the gateway to what is kept of the program's stderr. It is set for StartWith.
	Log func(line string)
}

func (s Streams) close() { closeAll([]*os.File{s.Stdin, s.Stdout, s.Stderr}) }

// openPipes creates the pipes and returns the ends of the program.
func (p *Process) openPipes() (theirs Streams, err error) {
	if theirs.Stdin, p.Stdin, err = os.Pipe(); err != nil {
		return theirs, err
	}
	if p.Stdout, theirs.Stdout, err = os.Pipe(); err != nil {
		return theirs, err
	}
	p.errors, theirs.Stderr, err = os.Pipe()
	return theirs, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// startError returns the error of a failed start, without repeating the path.
func startError(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return fmt.Errorf("start %q: %w", e.Name, e.Err)
	}
	return fmt.Errorf("start process: %w", err)
}

// run starts a process, waits for its end and cleans up after it.
//
// The kernel sends the parent-death signal when the thread that forked ends, not
// the whole parent, and Go may end threads at any time. So the goroutine locks its
// thread until the process has ended. The signal reaches only the direct child; the
// group is killed by the shell that startReaper starts.
func (p *Process) run(g *group, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := g.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	g.reaper = startReaper(g.cmd.Process.Pid)
	awaitExit(g.cmd.Process.Pid)
	p.status = g.reap() + after(time.Since(p.started))
	close(p.ended)
	g.reaper.wait()
	p.closePipes()
	close(p.done)
}

// group is a process group of this machine.
type group struct {
	cmd    *exec.Cmd
	reaper *reaper // nil where there is no shell

	mu     sync.Mutex
	reaped bool
}

// reap kills what is left of the group and returns the status of its first process.
func (g *group) reap() string {
	g.signal(syscall.SIGKILL)
	g.reaper.disarm()
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.cmd.Wait()
	g.reaped = true
	return exitStatus(g.cmd.ProcessState, err)
}

// signal sends sig to the whole group, unless the process was reaped.
func (g *group) signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.reaped {
		_ = signalGroup(g.cmd.Process, sig) // it may have ended
	}
}

func (g *group) pid() int                 { return g.cmd.Process.Pid }
func (*group) exitTimeout() time.Duration { return pipeTimeout }

// closePipes waits for the readers, for a limited time if another process holds the other end.
func (p *Process) closePipes() {
	deadline := time.After(pipeTimeout)
	for _, read := range []chan struct{}{p.Drained, p.stderrDone} {
		select {
		case <-read:
		case <-deadline:
			deadline = time.After(0)
		}
	}
	p.closeOwn()
	<-p.stderrDone
}

// Stop ends the program, gracefully first, within 2 s.
func (p *Process) Stop() {
	_ = p.Stdin.Close()
	if p.doneWithin(afterEOF) {
		return
	}
	p.runner.signal(syscall.SIGTERM)
	if p.doneWithin(afterTerm) {
		return
	}
	p.runner.signal(syscall.SIGKILL)
	p.doneWithin(afterKill)
}

func (p *Process) doneWithin(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}

// Pid returns the process ID, 0 when the process has ended.
func (p *Process) Pid() int {
	select {
	case <-p.ended:
		return 0
	default:
		return p.runner.pid()
	}
}

// HasReadInput reports whether the process has read all pending input.
func (p *Process) HasReadInput() bool {
	conn, err := p.Stdin.SyscallConn()
	if err != nil {
		return true
	}
	waiting := 0
	err = conn.Control(func(fd uintptr) { waiting = unread(fd) })
	return err != nil || waiting == 0
}

// ExitError returns an error with the reason why the output of the process ended.
func (p *Process) ExitError() error {
	select {
	case <-p.ended:
	case <-time.After(p.runner.exitTimeout()):
		return &exitError{status: "closed its output", headline: p.Stderr.Headline()}
	}
	select {
	case <-p.stderrDone:
	case <-time.After(pipeTimeout):
	}
	return &exitError{status: p.status, headline: p.Stderr.Headline()}
}

// exitError is the exit status of a process, with the headline of its stderr, untrusted and raw.
type exitError struct{ status, headline string }

func (d *exitError) Error() string {
	if d.headline == "" {
		return d.status
	}
	return d.status + "; stderr: " + d.headline
}

// IsExit reports whether err is or wraps an error of [Process.ExitError].
func IsExit(err error) bool {
	_, ok := errors.AsType[*exitError](err)
	return ok
}

func exitStatus(state *os.ProcessState, err error) string {
	if state == nil {
		return fmt.Sprintf("was lost: %v", err)
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%v)", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("exited with status %d", state.ExitCode())
}

// after says how long a process ran, "" for less than five seconds: the time that a start takes says nothing.
func after(d time.Duration) string {
	switch {
	case d < 5*time.Second:
		return ""
	case d < 2*time.Minute:
		return fmt.Sprintf(" after %d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf(" after %d min", int(d.Minutes()))
	}
	return fmt.Sprintf(" after %d h", int(d.Hours()))
}

// environment returns the variables of this process that an upstream may have, and its own.
func environment(ours []string, own map[string]string) []string {
	env := map[string]string{}
	for _, entry := range ours {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(inheritedVars, name) || strings.HasPrefix(name, "XDG_") {
			env[name] = value
		}
	}
	maps.Copy(env, own)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
