// Package benchtest builds what tests of the benchmarks play tasks with.
package benchtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/testutil"
)

// Sallyport builds the binary into a folder, with runsc next to it.
func Sallyport(tb testing.TB, dir string) string {
	tb.Helper()
	if err := os.Symlink(testutil.Runsc(tb), filepath.Join(dir, "runsc")); err != nil {
		tb.Fatal(err)
	}
	binary := filepath.Join(dir, "sallyport")
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", binary, "./cmd/sallyport")
	build.Dir = testutil.ModuleRoot(tb)
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return binary
}
