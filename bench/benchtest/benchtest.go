// Package benchtest builds what tests of the benchmarks play tasks with.
package benchtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/testutil"
)

// Sallyport puts the built binary into a folder, with runsc next to it.
func Sallyport(tb testing.TB, dir string) string {
	tb.Helper()
	if err := os.Symlink(testutil.Runsc(tb), filepath.Join(dir, "runsc")); err != nil {
		tb.Fatal(err)
	}
	binary := filepath.Join(dir, "sallyport")
	if out, err := exec.CommandContext(tb.Context(), "cp", testutil.Binary(tb), binary).CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	return binary
}
