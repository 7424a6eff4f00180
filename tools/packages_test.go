package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPackages makes the archive, the deb and the npm packages of this machine from what make build and make runsc left,
// installs them in new folders, and takes the first steps of a new user with each. `make dist-check` does it with the
// packages of a release, in new root file systems. The patches of libraries in a release are tried here, too.
func TestPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs programs in sandboxes")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(root, ".cache", "bin")
	for _, name := range []string{"sallyport", "runsc"} {
		if _, err := os.Stat(filepath.Join(programs, name)); err == nil {
			continue
		} else if os.Getenv("SALLYPORT_REQUIRE") == "" {
			t.Skip(err)
		}
		t.Fatalf("run make build runsc first: %s is missing", name)
	}
	out := t.TempDir()
	run(t, root, nil, "run", ".", "-root", root, "-out", out, "-programs", programs)
	run(t, root, []string{"SALLYPORT_DIST=" + out, "SALLYPORT_DIST_FAST=1"}, "test", "-count=1", "-vet=off", "-v", "-run", "^(TestArchive|TestNpm|TestDebContents|TestPatches|TestApply)$", ".")
}

// run runs a command of go in tools/dist, and logs what it prints.
func run(t *testing.T, root string, env []string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"-C", filepath.Join(root, "tools", "dist")}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	t.Logf("go %q:\n%s", args, out)
	if err != nil {
		t.Fatal(err)
	}
}
