package machine_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/bench/machine"
	"sallyport/internal/testutil"
)

func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	testutil.WriteProgram(t, program, "#!/bin/sh\n[ \"$1\" = --version ] && printf ' program   1.2 \\nby us\\n'\n")
	if got, err := machine.Version(t.Context(), program, "--version"); err != nil || got != "program 1.2" {
		t.Errorf("version %q, %v", got, err)
	}
	if got, err := machine.Version(t.Context(), program, "--help"); err == nil {
		t.Errorf("version %q of a program that fails", got)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got, err := machine.Digest(empty); err != nil || got != none {
		t.Errorf("digest %q, %v", got, err)
	}
	if got, err := machine.Digest(filepath.Join(dir, "missing")); err == nil {
		t.Errorf("digest %q of no file", got)
	}
}
