// Package golden compares what a test got with a file, or rewrites the file. A
// package with tests that import it has the flag -update; `make golden` finds them by
// this import, so a test that wants the flag for itself takes [Update].
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Update reports whether golden files are to be rewritten.
func Update() bool { return *update }

// Check fails the test if the file does not contain got, or writes got to the file if [Update].
func Check(tb testing.TB, path, got string) {
	tb.Helper()
	if *update {
		write(tb, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("%s; -update rewrites it (-want +got):\n%s", path, diff)
	}
}

func write(tb testing.TB, path, got string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		tb.Fatal(err)
	}
}
