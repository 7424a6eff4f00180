// Package testutil holds what tests of several rooms need: a logger, golden
// files, and the real components that `make` builds for them.
package testutil

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

// Runsc returns the path of the runsc that `make runsc` builds.
func Runsc(tb testing.TB) string {
	tb.Helper()
	return component(tb, "SALLYPORT_TEST_RUNSC", ".cache/bin/runsc", "make runsc")
}

// Upstreams returns the node_modules folder that `make upstreams` fills.
func Upstreams(tb testing.TB) string {
	tb.Helper()
	return component(tb, "SALLYPORT_TEST_UPSTREAMS", "tools/upstreams/node_modules", "make upstreams")
}

// Program returns the path of an interpreter that `make` asks for.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(tb, name, "install it")
	}
	return path
}

// component finds a real component, in the environment or in the module's folder.
func component(tb testing.TB, variable, path, target string) string {
	tb.Helper()
	found := os.Getenv(variable)
	if found == "" {
		found = filepath.Join(ModuleRoot(tb), path)
	}
	if _, err := os.Stat(found); err != nil {
		missing(tb, found, "`"+target+"` builds it")
	}
	return found
}

// missing skips the test, or fails it where SALLYPORT_REQUIRE is set: `make test` sets it.
func missing(tb testing.TB, what, mend string) {
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
