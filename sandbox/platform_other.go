//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"

	"sallyport/sandbox/bridge"
)

// Platform returns nil if this system can run sandboxes, otherwise an error that says what to do.
func Platform() error {
	name := map[string]string{"darwin": "macOS", "windows": "Windows"}[runtime.GOOS]
	if name == "" {
		name = runtime.GOOS
	}
	return fmt.Errorf("sandboxes need Linux, and this is %s: `sallyport vm up` makes a virtual machine for them, and --sandbox ssh://USER@HOST or sandbox.remote in upstreams.yaml names a Linux machine (docs/how-to/macos-and-windows.md); all but programs works here, and no program runs without a sandbox", name)
}

// errUnsupported is returned by the methods of a host, which cannot exist on this system.
var errUnsupported = errors.New("sandboxes are not supported on this system")

// Host starts sandboxes on Linux. On this system it cannot be created.
type Host struct{}

// Server is a running service, on Linux.
type Server struct{}

// ErrNoInterpreter means that an environment cannot run programs of that language.
var ErrNoInterpreter = errors.New("this environment has no such interpreter")

// New returns the error of Platform.
func New(Options) (*Host, error) { return nil, Platform() }

// Sweep does nothing: no host can have left anything.
func Sweep(string, *slog.Logger) error { return nil }

// Checks returns one failed check: sandboxes need Linux.
func Checks(context.Context, Options) []Check {
	return []Check{{Name: "sandbox", Detail: Platform().Error(), Fix: "run `sallyport vm up`, or name a Linux machine with --sandbox ssh://USER@HOST, or sandbox.remote in upstreams.yaml"}}
}

// FindRunsc returns the error of Platform.
func FindRunsc(string) (string, error) { return "", Platform() }

// Runtime returns the error of Platform.
func Runtime(context.Context, string) (version, path string, err error) { return "", "", Platform() }

// InterpreterPath returns the error of Platform.
func InterpreterPath(Interpreter, string) (string, error) { return "", Platform() }

// MountPoints returns nil.
func MountPoints() []string { return nil }

// CheckRoot returns the error of Platform.
func CheckRoot(string, ...string) error { return Platform() }

// DigestRoot returns the error of Platform.
func DigestRoot(context.Context, string) (string, error) { return "", Platform() }

// Run runs nothing.
func (*Host) Run(context.Context, Job, bridge.Caller) (Outcome, error) { return Outcome{}, Platform() }

// Define returns the error of Platform.
func (*Host) Define(string, Environment) (string, error) { return "", Platform() }

// Warm prepares nothing.
func (*Host) Warm(...Job) {}

// Waiting returns 0 and true.
func (*Host) Waiting(Interpreter) (n int, full bool) { return 0, true }

// Publish returns the error of Platform.
func (*Host) Publish(map[string][]byte) error { return Platform() }

// Serve returns the error of Platform.
func (*Host) Serve(Service) (*Server, error) { return nil, Platform() }

// GuestInterpreter returns "".
func (*Host) GuestInterpreter(Interpreter) string { return "" }

// HostInterpreter returns "".
func (*Host) HostInterpreter(Interpreter) string { return "" }

// Close does nothing.
func (*Host) Close() error { return nil }

// Read returns an error.
func (*Server) Read([]byte) (int, error) { return 0, errUnsupported }

// Write returns an error.
func (*Server) Write([]byte) (int, error) { return 0, errUnsupported }

// Listener returns nil.
func (*Server) Listener() net.Listener { return nil }

// Done returns nil.
func (*Server) Done() <-chan struct{} { return nil }

// Ended returns nothing.
func (*Server) Ended() (status int, exited bool, reason Status) { return 0, false, Crashed }

// Checkpoint returns an error.
func (*Server) Checkpoint(context.Context, string) error { return errUnsupported }

// Sentry returns 0.
func (*Server) Sentry() int { return 0 }

// Close does nothing.
func (*Server) Close() error { return nil }
