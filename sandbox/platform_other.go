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

// Platform is nil where sandboxes can run, and else says why they cannot and what to do.
func Platform() error {
	name := map[string]string{"darwin": "macOS", "windows": "Windows"}[runtime.GOOS]
	if name == "" {
		name = runtime.GOOS
	}
	return fmt.Errorf("sandboxes need Linux, and this is %s: name a Linux machine or VM that ssh can log in to and that has sallyport, with --sandbox ssh://USER@HOST or sandbox.remote in upstreams.yaml (docs/remote.md); all but programs works here, and no program runs without a sandbox", name)
}

// errNone is what methods of a host that cannot exist return.
var errNone = errors.New("there is no sandbox")

// Host starts sandboxes on Linux; here there is none, and nothing that runs programs in its place.
type Host struct{}

// Server is a service that runs, on Linux.
type Server struct{}

// ErrNoInterpreter says that an environment cannot run programs of that language.
var ErrNoInterpreter = errors.New("this environment has no such interpreter")

// New returns the error of Platform.
func New(Options) (*Host, error) { return nil, Platform() }

// Sweep has nothing to clear away.
func Sweep(string, *slog.Logger) error { return nil }

// Checks says what is missing, which is Linux.
func Checks(context.Context, Options) []Check {
	return []Check{{Name: "sandbox", Detail: Platform().Error(), Fix: "name a Linux machine with --sandbox ssh://USER@HOST, or sandbox.remote in upstreams.yaml"}}
}

// FindRunsc returns the error of Platform.
func FindRunsc(string) (string, error) { return "", Platform() }

// Runtime returns the error of Platform.
func Runtime(context.Context, string) (version, path string, err error) { return "", "", Platform() }

// InterpreterPath returns the error of Platform.
func InterpreterPath(Interpreter, string) (string, error) { return "", Platform() }

// MountPoints are the folders of every sandbox, see Linux.
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

// Waiting counts nothing.
func (*Host) Waiting(Interpreter) (n int, full bool) { return 0, true }

// Publish keeps nothing.
func (*Host) Publish(map[string][]byte) error { return Platform() }

// Serve starts nothing.
func (*Host) Serve(Service) (*Server, error) { return nil, Platform() }

// Program is nowhere.
func (*Host) Program(Interpreter) string { return "" }

// ProgramOnHost is nowhere.
func (*Host) ProgramOnHost(Interpreter) string { return "" }

// Close does nothing.
func (*Host) Close() error { return nil }

// Read reads nothing.
func (*Server) Read([]byte) (int, error) { return 0, errNone }

// Write writes nothing.
func (*Server) Write([]byte) (int, error) { return 0, errNone }

// Listener is none.
func (*Server) Listener() net.Listener { return nil }

// Done is never closed.
func (*Server) Done() <-chan struct{} { return nil }

// Close does nothing.
func (*Server) Close() error { return nil }
