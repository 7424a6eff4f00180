//go:build linux

// Package runsc runs gVisor's OCI runtime, runsc, with os/exec. [Runsc] has the
// settings and one method per command. Killing the runsc command does not kill its
// container, and a killed container does not end the command at once: see [Process].
package runsc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Runsc holds the settings of every call. Only Path and Root are required.
type Runsc struct {
	// Path of the runsc binary.
	Path string
	// Root is the directory where runsc keeps the state of its containers.
	Root string
	// Platform of gVisor; "" is systrap, which works everywhere (kvm was seen to hang).
	Platform string
	// Rootless starts each container in its own user namespace, for a gateway that is not root.
	// We create the namespace, because runsc's --rootless cannot restore.
	Rootless bool
	// Enter is called on the thread that starts a container, just before the start, and may change the attributes
	// or move the thread into a cgroup; leave is called on that thread right after the start. It may be nil.
	Enter func(*syscall.SysProcAttr) (leave func(), err error)
	// SharedMounts makes host changes of mounted files visible, at the price of slower access;
	// without it, gVisor caches files that a container has accessed.
	SharedMounts bool
	// NoSockets hides the host's Unix sockets in mounted folders.
	NoSockets bool
	// Network gives the container the interfaces of the network namespace that its command is started in; see Prepare.
	Network bool
	// Prepare is called with the command that Start or Restore is about to start, and may change it. It may be nil.
	Prepare func(cmd *exec.Cmd) error
	// Nice is added to the niceness of what Start starts, 0 to 19.
	Nice int
	// DebugLog is a directory (with a trailing slash) for runsc's logs; "" is none.
	DebugLog string
	// Syscalls are system calls of the container that are recorded in DebugLog.
	Syscalls []string
}

// globalFlags returns the flags of every command.
func (r *Runsc) globalFlags() []string {
	platform, access, sockets, network := r.Platform, "exclusive", "open", "none"
	if platform == "" {
		platform = "systrap"
	}
	if r.SharedMounts {
		access = "shared"
	}
	if r.NoSockets {
		sockets = "none"
	}
	if r.Network {
		network = "sandbox"
	}
	args := []string{
		"--root=" + r.Root,
		"--platform=" + platform,
		"--network=" + network,
		"--host-uds=" + sockets, // the bridge's socket; programs cannot create one on the host
		"--overlay2=none",       // the root file system is read-only and needs none
		"--file-access-mounts=" + access,
		"--ignore-cgroups=true", // the caller starts it in a cgroup, see Enter
	}
	if r.DebugLog != "" {
		args = append(args, "--debug", "--debug-log="+r.DebugLog)
	}
	if len(r.Syscalls) > 0 {
		args = append(args, "--strace", "--strace-syscalls="+strings.Join(r.Syscalls, ","))
	}
	return args
}

// Version returns the first line of `runsc --version`, "runsc version ...".
func (r *Runsc) Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, r.Path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("runsc --version: %w", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}

// Checkpoint ends a container and saves its state as image files in the directory image, which it creates.
func (r *Runsc) Checkpoint(ctx context.Context, id, image string) error {
	if err := os.MkdirAll(image, 0o700); err != nil {
		return fmt.Errorf("make image directory: %w", err)
	}
	_, err := r.output(ctx, "checkpoint", "--image-path="+image, id)
	return err
}

// ExitError means that a runsc command exited with a status other than 0.
type ExitError struct {
	Verb   string
	Status int
	// Output is the end of its stderr, at most 2 KiB.
	Output string
}

// Error returns the verb, the status and runsc's stderr.
func (e *ExitError) Error() string {
	return fmt.Sprintf("runsc %s: exit status %d: %s", e.Verb, e.Status, e.Output)
}

func (r *Runsc) output(ctx context.Context, verb string, args ...string) (string, error) {
	var stdout bytes.Buffer
	err := r.run(ctx, nil, &stdout, verb, args...)
	if err != nil {
		return "", err
	}
	return stdout.String(), nil
}

// run runs one command to its end.
func (r *Runsc) run(ctx context.Context, stdin io.Reader, stdout io.Writer, verb string, args ...string) error {
	cmd := exec.CommandContext(ctx, r.Path, append(append(r.globalFlags(), verb), args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children of its own
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &stderr
	cmd.Env = environment()
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return &ExitError{Verb: verb, Status: exit.ExitCode(), Output: tail(stderr.String())}
	}
	if err != nil {
		return fmt.Errorf("runsc %s: %w", verb, cmp.Or(ctx.Err(), err))
	}
	return nil
}

// environment returns the environment variables of runsc: it needs only PATH.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH")}
}

func tail(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 2048 {
		s = s[len(s)-2048:]
	}
	return s
}
