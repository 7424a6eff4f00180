// Package testutil has helpers for tests of several packages: a logger, polling, and the real components that `make`
// builds. Below it, golden compares with files, and authserver is an authorization server.
package testutil

import (
	"compress/gzip"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Logger returns a logger that writes to the test's own log.
func Logger(tb testing.TB) *slog.Logger {
	tb.Helper()
	return slog.New(slog.NewTextHandler(logWriter{tb}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type logWriter struct{ tb testing.TB }

func (w logWriter) Write(p []byte) (int, error) {
	w.tb.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// leastLimit is the least limit of Eventually. On a busy machine an upstream can fail five times before a test has it work again,
// and is then parked for up to 75 seconds.
const leastLimit = 2 * time.Minute

// Eventually polls ok every 5 ms, or less often if ok takes long, and fails the test with all stacks after the limit, or leastLimit if
// that is longer: a slow machine is no failure. what describes the condition: "the wrappers follow".
func Eventually(tb testing.TB, what string, limit time.Duration, ok func() bool) {
	tb.Helper()
	for start := time.Now(); ; {
		asked := time.Now()
		if ok() {
			return
		}
		if time.Since(start) > max(limit, leastLimit) {
			stacks := make([]byte, 1<<20)
			tb.Fatalf("%s\ncondition not met in time: %s", stacks[:runtime.Stack(stacks, true)], what) // the end of a log is what is read
		}
		time.Sleep(max(5*time.Millisecond, min(4*time.Since(asked), 100*time.Millisecond)))
	}
}

// WriteProgram writes a file that the test executes. No process is started while the file is open: its child would have
// the descriptor too, for a moment, and Linux does not execute a file that is open for writing (https://go.dev/issue/22315).
func WriteProgram(tb testing.TB, path, content string) {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		tb.Fatal(err)
	}
}

// ShortDir is tb.TempDir with a path short enough for a Unix socket: at most 108 bytes.
func ShortDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "sp-") //nolint:usetesting // the paths of TempDir are too long for sockets
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// Processes returns the command lines that contain text, such as the path of a state directory.
func Processes(text string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), text) {
			found = append(found, file+": "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

// NoProcesses waits up to a minute for the [Processes] with that text to end, and fails the test if one is left.
func NoProcesses(tb testing.TB, text string) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); len(Processes(text)) > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if left := Processes(text); len(left) > 0 {
		tb.Errorf("processes left: %q", left)
	}
}

// Runsc returns the path of the runsc that `make runsc` builds. With -short it skips the test, as Checkers, Clients and
// Browser do: starting these takes most of the time of all tests.
func Runsc(tb testing.TB) string {
	tb.Helper()
	Long(tb)
	return component(tb, "SALLYPORT_TEST_RUNSC", ".cache/bin/runsc", "make runsc")
}

// Binary returns the path of a built sallyport: SALLYPORT_TEST_BINARY, or one that is built for this test. The build takes
// seconds, because each links the whole program.
func Binary(tb testing.TB) string {
	tb.Helper()
	if binary := os.Getenv("SALLYPORT_TEST_BINARY"); binary != "" {
		return binary
	}
	binary := filepath.Join(tb.TempDir(), "sallyport")
	build := exec.CommandContext(tb.Context(), "go", "build", "-ldflags=-w", "-o", binary, "./cmd/sallyport") //nolint:forbidigo // a build ends by itself
	build.Dir = ModuleRoot(tb)
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// Upstreams returns the node_modules folder that `make upstreams` fills.
func Upstreams(tb testing.TB) string {
	tb.Helper()
	return component(tb, "SALLYPORT_TEST_UPSTREAMS", "tools/upstreams/node_modules", "make upstreams")
}

// Checkers returns the node_modules folder that `make checkers` fills: pyright, typescript, @types/node.
func Checkers(tb testing.TB) string {
	tb.Helper()
	Long(tb)
	return component(tb, "SALLYPORT_TEST_CHECKERS", "tools/typecheck/node_modules", "make checkers")
}

// Editor returns the node_modules folder that `make editor-packages` fills: CodeMirror.
func Editor(tb testing.TB) string {
	tb.Helper()
	return component(tb, "SALLYPORT_TEST_EDITOR", "tools/editor/node_modules", "make editor-packages")
}

// Clients returns the node_modules folder that `make clients` fills, for running the examples.
func Clients(tb testing.TB) string {
	tb.Helper()
	Long(tb)
	return component(tb, "SALLYPORT_TEST_CLIENTS", "tools/clients/node_modules", "make clients")
}

// Browser returns the folder of the Chromium that `make browser` unpacks.
func Browser(tb testing.TB) string {
	tb.Helper()
	Long(tb)
	return component(tb, "SALLYPORT_TEST_BROWSER", ".cache/browser", "make browser")
}

// Helm returns the path of the program that `make helm` builds, which checks the chart and the compose files.
func Helm(tb testing.TB) string {
	tb.Helper()
	return component(tb, "SALLYPORT_TEST_HELM", ".cache/bin/helm", "make helm")
}

// Program returns the path of an interpreter that `make` requires.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(tb, name, "install it")
	}
	return path
}

// component finds a real component, by an environment variable or in the module's folder.
func component(tb testing.TB, variable, path, target string) string {
	tb.Helper()
	found := os.Getenv(variable)
	if found == "" {
		found = filepath.Join(ModuleRoot(tb), path)
	}
	if _, err := os.Stat(found); err != nil {
		Missing(tb, found, "`"+target+"` builds it")
	}
	return found
}

// TAP wants that processes may have TAP devices, as sandboxes with allowed hosts do.
func TAP(tb testing.TB) {
	tb.Helper()
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		Missing(tb, "a TAP device ("+err.Error()+")", "load the kernel module tun, and run as root")
	}
	_ = file.Close() // nothing was written
}

// Long skips a test with -short: one that takes seconds.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("skipped with -short")
	}
}

// Missing skips the test, or fails it if SALLYPORT_REQUIRE is set, as in `make test`.
func Missing(tb testing.TB, what, mend string) {
	tb.Helper()
	if os.Getenv("SALLYPORT_REQUIRE") != "" {
		tb.Fatalf("%s is missing; %s", what, mend)
	}
	tb.Skipf("%s is missing; %s", what, mend)
}

// ModuleRoot returns the folder of go.mod.
func ModuleRoot(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	tb.Fatal("no go.mod above the test's folder")
	return ""
}

// Gunzip returns the content of a compressed file.
func Gunzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
