//go:build linux

package runsc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one container that runs under `runsc run` or `runsc restore`. Its processes
// are the runsc command, the sentry (gVisor's kernel, with the program inside) and the
// gofer (its file server). Parent death signals end the latter two with the command,
// and the command with this process.
type Process struct {
	runsc   *Runsc
	id      string
	pidFile string
	cmd     *exec.Cmd

	done chan struct{}
	err  error

	mu     sync.Mutex // guards sentry
	sentry *os.Process
}

// Stdio are the container's standard streams. They must be pipes or other
// non-seekable files: the sentry writes to a regular file at an offset of its own.
type Stdio struct {
	// Stdin is nil for one that is empty.
	Stdin          *os.File
	Stdout, Stderr *os.File
}

// Start runs the bundle's container with the given ID, and returns when the
// runsc command has been started. The caller must call Wait.
func (r *Runsc) Start(id, bundle string, stdio Stdio) (*Process, error) {
	return r.start(id, bundle, stdio, "run")
}

// Restore is Start for a container that continues from a Checkpoint of another one.
// The bundles must be equal except for the sources of mounts.
func (r *Runsc) Restore(id, bundle, image string, stdio Stdio) (*Process, error) {
	return r.start(id, bundle, stdio, "restore", "--image-path="+image)
}

func (r *Runsc) start(id, bundle string, stdio Stdio, verb ...string) (*Process, error) {
	p := &Process{runsc: r, id: id, pidFile: filepath.Join(bundle, "sentry.pid"), done: make(chan struct{})}
	//nolint:noctx // a context would kill the command alone: Destroy ends all of the container
	p.cmd = exec.Command(r.Path, slices.Concat(r.globalFlags(), verb, []string{"--bundle=" + bundle, "--pid-file=" + p.pidFile, id})...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = stdio.Stdout, stdio.Stderr, environment()
	if stdio.Stdin != nil {
		p.cmd.Stdin = stdio.Stdin
	}
	p.cmd.SysProcAttr = r.attributes()
	if r.Prepare != nil {
		if err := r.Prepare(p.cmd); err != nil {
			return nil, fmt.Errorf("start runsc: %w", err)
		}
	}
	started := make(chan error)
	go func() {
		// A parent death signal is sent when the thread that forked ends, so that
		// thread has to live as long as the child.
		runtime.LockOSThread()
		if r.Nice == 0 {
			defer runtime.UnlockOSThread()
		} else { // on Linux niceness is per thread and inherited: the locked thread ends with the goroutine
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, r.Nice)
		}
		err := p.enterAndStart()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start runsc: %w", namespaceError(err))
	}
	return p, nil
}

// ErrNamespaces means that this process may not make the namespaces that a container needs.
var ErrNamespaces = errors.New("no user namespace can be made here")

// namespaceError names the likely reason of a start that the kernel refused.
func namespaceError(err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS) {
		return fmt.Errorf("%w: %w", ErrNamespaces, err)
	}
	return err
}

func (p *Process) enterAndStart() error {
	if p.runsc.Enter == nil {
		return p.cmd.Start()
	}
	leave, err := p.runsc.Enter(p.cmd.SysProcAttr)
	if err != nil {
		return err
	}
	defer leave()
	return p.cmd.Start()
}

// attributes make the command die with this process and, if Rootless, run as root of a user namespace that maps only our user.
func (r *Runsc) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if r.Rootless {
		own := Namespace()
		attr.Cloneflags, attr.UidMappings, attr.GidMappings = own.Cloneflags, own.UidMappings, own.GidMappings
	}
	return attr
}

// Namespace returns the attributes of a process that is root of a user namespace that maps only our user, with its own mounts.
func Namespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
}

// Done is closed when the container has ended and runsc has cleaned up after it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns the exit status of the container's first
// process: 128 plus the signal's number where a signal ended it.
func (p *Process) Wait() (int, error) {
	<-p.done
	if p.err == nil {
		return 0, nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return -1, p.err
}

// Sentry returns the process ID of the sentry, 0 while it is unknown.
func (p *Process) Sentry() int {
	if sentry := p.sentryProcess(); sentry != nil {
		return sentry.Pid
	}
	return 0
}

// sentryProcess returns a handle of the sentry, nil while it is unknown. The handle is a
// pidfd opened while the sentry's parent runs, so it never refers to another process.
func (p *Process) sentryProcess() *os.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sentry != nil || p.ended() {
		return p.sentry
	}
	data, err := os.ReadFile(p.pidFile)
	if err != nil {
		return nil
	}
	// The file exists before its content is written, so an invalid number is not an error.
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && pid > 1 {
		p.sentry, _ = os.FindProcess(pid)
	}
	return p.sentry
}

// The time limits of Destroy. Their sum is less than half a second, because saving files may come first, and
// everything must be removed within a second.
const (
	cleanLimit = 150 * time.Millisecond // for a command whose container is gone to clean up
	endLimit   = 100 * time.Millisecond // for a killed command to have ended
)

// Destroy removes the container completely. It kills all processes in the container,
// gives the command time to clean up, kills the command too, and finally removes the
// remaining state. It takes less than half a second even if something hangs, may be called
// at any time, and is idempotent.
func (p *Process) Destroy() error {
	if sentry := p.sentryProcess(); sentry != nil && !p.ended() {
		// All processes in the container end with the sentry, which is the first one of their namespace, and the command
		// waits for it. It is killed alone, because it costs much to look for the others.
		_ = sentry.Kill() // fails only if it has ended
		p.waitFor(cleanLimit)
	}
	if !p.ended() { // a process hangs in the kernel, or there is no sentry yet
		below := descendants(p.cmd.Process.Pid)
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		killAll(below)
		p.waitFor(endLimit)
	}
	return p.deleteState()
}

func killAll(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *Process) waitFor(limit time.Duration) {
	select {
	case <-p.done:
	case <-time.After(limit):
	}
}

// deleteState removes the files of the container in runsc's root directory, which `runsc restore` leaves and a killed command
// too. No process of the container is left, so `runsc delete` would do no more, at the cost of another process.
func (p *Process) deleteState() error {
	left, err := filepath.Glob(filepath.Join(p.runsc.Root, p.id+"_sandbox:*"))
	for _, file := range append(left, filepath.Join(p.runsc.Root, "runsc-"+p.id+".sock")) {
		if removeErr := os.Remove(file); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}
